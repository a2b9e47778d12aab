// Shared parts of the templates of unrolled shaders: repetition, the frame of a kernel, and the layout of the text.

/** Maximum number of columns of a line of a shader. */
const COLUMNS = 120;

/** Components of a vector. */
export const LANES = ['x', 'y', 'z', 'w'];

/** Products of one row with four others. */
export const DOTS = `
  fn dots(p: vec4<f32>, a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32>) -> vec4<f32> {
    return vec4<f32>(dot(p, a), dot(p, b), dot(p, c), dot(p, d));
  }`;

/** `part(0)`, `part(1)` … `part(count - 1)`, with `perLine` of them on a line. */
export function each(count, part, perLine = 1) {
  return Array.from({ length: count }, (_, i) => part(i) + ((i + 1) % perLine === 0 ? '\n' : ' '))
    .join('')
    .trimEnd();
}

/** `part(0), part(1)` … `part(count - 1)`, separated by `separator`. */
export function list(count, part, separator = ', ') {
  return Array.from({ length: count }, (_, i) => part(i)).join(separator);
}

/** Sums that start at zero, those of one row on a line: `a0`, `b0` … for the names `ab`. */
export function zeros(rows, names) {
  return each(rows, (r) => [...names].map((name) => `var ${name}${r} = vec4<f32>();`).join(' '));
}

/** The position `by` after another one. */
export function after(place, by) {
  return by === 0 ? place : `${place} + ${by}u`;
}

/** Buffers of vec4, for `bindings`. */
export function vectors(...names) {
  return names.map((name) => `${name}: vec4<f32>`);
}

/**
 * The parameters by name, u32 unless the name has a type (`scale: f32`), and the bindings, which end with them. `w` is declared by the chunk that
 * reads the weights.
 */
export function bindings(parameters, ...buffers) {
  const fields = parameters.map((name) => (name.includes(':') ? name : `${name}: u32`));
  const types = [
    ...buffers.map((buffer) => buffer.replace(/: (.*)/, ': array<$1>')),
    'params: Params',
  ];
  const bound = types.map((type, i) =>
    type === 'w' ? '' : `@group(0) @binding(${i}) var<storage, read_write> ${type};\n`,
  );
  return `struct Params {
    ${fields.map((field) => `${field === 'plane: u32' ? '// Where the second plane of w begins.\n' : ''}${field},`).join('\n')}
  }

  ${bound.join('').trimEnd()}`;
}

/** The entry point, with `threads` threads per workgroup. */
export function main(threads, body) {
  return `
    @compute @workgroup_size(${threads})
    fn main(
      @builtin(workgroup_id) group: vec3<u32>,
      @builtin(num_workgroups) groups: vec3<u32>,
      @builtin(local_invocation_index) lane: u32,
    ) {
      ${body}
    }`;
}

/** The parameters with these names as variables. */
export function fromParams(...names) {
  return names.map((name) => `let ${name} = params.${name};`).join(' ');
}

/** The text of a shader: each line indented by the number of brackets open at its start, no blank line inside a function. */
export function layout(name, template) {
  const lines = ['// Made by shaders/blocks.mjs'];
  let depth = 0;
  for (const text of template
    .trim()
    .split('\n')
    .map((line) => line.trim())) {
    if (text === '' && (depth > 0 || lines.at(-1) === '')) continue;
    const code = text.startsWith('//') ? '' : text;
    const line = '  '.repeat(depth - (/^[)}]*/.exec(code)?.[0] ?? '').length) + text;
    if (line.length > COLUMNS)
      throw new Error(
        `${name}: expected at most ${COLUMNS} columns, found ${line.length}: ${text}`,
      );
    depth += code.split(/[({]/).length - code.split(/[)}]/).length;
    lines.push(line);
  }
  return `${lines.join('\n')}\n`;
}
