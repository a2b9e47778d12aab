//! A shader in naga's form, and functions to walk through it.

use naga::valid::{Capabilities, FunctionInfo, ModuleInfo, ValidationFlags, Validator};
use naga::{Block, Expression, Function, Handle, Module, Statement, TypeInner};

/// A shader that was parsed and found valid.
pub struct Parsed {
    pub module: Module,
    pub info: ModuleInfo,
}

pub fn parsed(source: &str) -> Parsed {
    let module = naga::front::wgsl::parse_str(source)
        .unwrap_or_else(|error| panic!("{}", error.emit_to_string(source)));
    let info = Validator::new(ValidationFlags::all(), Capabilities::empty())
        .validate(&module)
        .unwrap();
    Parsed { module, info }
}

/// A function of a shader with its types.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    pub parsed: &'a Parsed,
    pub function: &'a Function,
    info: &'a FunctionInfo,
}

impl Parsed {
    /// Returns every function, the entry point last.
    pub fn functions(&self) -> Vec<Reader<'_>> {
        let own = self
            .module
            .functions
            .iter()
            .map(|(handle, function)| Reader {
                parsed: self,
                function,
                info: &self.info[handle],
            });
        let entry = &self.module.entry_points[0].function;
        own.chain([Reader {
            parsed: self,
            function: entry,
            info: self.info.get_entry_point(0),
        }])
        .collect()
    }
}

impl<'a> Reader<'a> {
    pub fn expression(&self, handle: Handle<Expression>) -> &'a Expression {
        &self.function.expressions[handle]
    }

    pub fn inner(&self, handle: Handle<Expression>) -> &'a TypeInner {
        self.info[handle].ty.inner_with(&self.parsed.module.types)
    }

    /// Returns the number of expressions and statements that use an expression.
    pub fn uses(&self, handle: Handle<Expression>) -> usize {
        self.info[handle].ref_count
    }

    /// Returns the function that a statement calls.
    pub fn called(&self, function: Handle<Function>) -> Reader<'a> {
        let module = &self.parsed.module;
        Reader {
            parsed: self.parsed,
            function: &module.functions[function],
            info: &self.parsed.info[function],
        }
    }

    /// Returns the integer value of an expression, if it has one.
    pub fn number(&self, handle: Handle<Expression>) -> Option<i64> {
        let literal = match self.expression(handle) {
            Expression::Literal(literal) => *literal,
            Expression::Constant(constant) => {
                let module = &self.parsed.module;
                let Expression::Literal(literal) =
                    module.global_expressions[module.constants[*constant].init]
                else {
                    return None;
                };
                literal
            }
            _ => return None,
        };
        match literal {
            naga::Literal::U32(value) => Some(value.into()),
            naga::Literal::I32(value) => Some(value.into()),
            _ => None,
        }
    }
}

/// Returns the blocks that a statement contains.
pub fn blocks(statement: &Statement) -> Vec<&Block> {
    match statement {
        Statement::Block(block) => vec![block],
        Statement::If { accept, reject, .. } => vec![accept, reject],
        Statement::Switch { cases, .. } => cases.iter().map(|case| &case.body).collect(),
        Statement::Loop {
            body, continuing, ..
        } => vec![body, continuing],
        _ => Vec::new(),
    }
}

/// Visits every statement of a block, including nested ones, unless `enters` returns false.
pub fn walk<'a>(
    block: &'a Block,
    enters: &dyn Fn(&Statement) -> bool,
    each: &mut dyn FnMut(&'a Statement),
) {
    for statement in block {
        each(statement);
        if enters(statement) {
            blocks(statement)
                .into_iter()
                .for_each(|block| walk(block, enters, each));
        }
    }
}

pub fn is_loop(statement: &Statement) -> bool {
    matches!(statement, Statement::Loop { .. })
}

/// Returns the loops of a function, including nested ones.
pub fn loops(function: &Function) -> Vec<&Statement> {
    let mut found = Vec::new();
    walk(&function.body, &|_| true, &mut |statement| {
        if is_loop(statement) {
            found.push(statement);
        }
    });
    found
}
