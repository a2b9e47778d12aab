//! Pieces of chat templates, rendered as Jinja2 renders them (`golden/expressions.json`).

use std::collections::BTreeMap;

use tabtune::tokenizer::Conversation;

use super::{golden, with_template};

const UNLIKE: &str =
    "minijinja has an order of values of unlike kinds; Python refuses to compare them";
const UNCALLED: &str = "a method that is not called is no value here";
const REFUSED: &str = "refused in words: no chat template uses it";
const LEFT: &str = "refused in words: minijinja cannot leave a loop from within a block with names or an output of its own";
const INDEX: &str = "a generator and a dictionary's view have items by their index in minijinja";
const KEYS: &str = "minijinja takes any value as a key, and tells 1 from true but where their hashes of this process meet";
const SHOWN: &str = "nobody means to write the name of a range or of a loop";
const MACROS: &str =
    "macros of minijinja have no varargs and kwargs, and a default cannot name another parameter";

/// Templates whose output differs, with the reason.
const DIFFERENT: [(&str, &str); 34] = [
    ("{{ 1 < 'a' }}", UNLIKE),
    ("{{ none < 1 }}", UNLIKE),
    ("{{ undefined_thing < 1 }}", UNLIKE),
    ("{{ 1 in s }}", UNLIKE),
    ("{{ [1, 'a'] | sort }}", UNLIKE),
    (
        "{{ s.upper is defined }}{{ s.upper is callable }}",
        UNCALLED,
    ),
    (
        "{% set p = tools[0].function.parameters.properties.tags %}{{ p.items.type }}",
        UNCALLED,
    ),
    (
        "{{ {'a': {'b': 1}} | attr('items') is callable }}{{ nested | attr('b') is defined }}",
        UNCALLED,
    ),
    ("{{ 'a\\tbc\\td'.expandtabs(4) }}", REFUSED),
    ("{{ s.encode('utf-8') | length }}", REFUSED),
    ("{{ 'abc'.translate({97: 'x'}) }}", REFUSED),
    ("{{ '{:>{}}'.format('a', 4) }}", REFUSED),
    ("{{ n.bit_length() }}{{ n.real }}", REFUSED),
    ("{{ 'ab' * -1 }}", REFUSED),
    (
        "{{ true + true }}{{ true + 1 }}{{ true * 2 }}{{ 5 - true }}{{ -true }}{{ true / 2 }}{{ [1, 2][true] }}",
        REFUSED,
    ),
    (
        "{{ 'a b' | urlencode }}{{ {'a': 'b c', 'd': 1} | urlencode }}{{ 'é/?&' | urlencode }}",
        REFUSED,
    ),
    (
        "{{ 'Hello big World' | wordwrap(6) }}|{{ 'abcdefghij kl' | wordwrap(4) }}",
        REFUSED,
    ),
    (
        "{{ '<p>a <b>b</b></p>' | striptags }}|{{ 1000000 | filesizeformat }}|{{ {'a': 1, 'b': none} | xmlattr }}",
        REFUSED,
    ),
    ("{{ [3, 1] | pprint }}{{ nested | pprint }}", REFUSED),
    ("{% autoescape true %}{{ '<' }}{% endautoescape %}", REFUSED),
    (
        "{% for x in numbers %}{% with y = x %}{% if y == 1 %}{% continue %}{% endif %}{{ y }}{% endwith %}{% endfor %}",
        LEFT,
    ),
    (
        "{% for x in numbers %}{% set y %}{{ x }}{% if x == 1 %}{% continue %}{% endif %}{% endset %}{{ y }}{% endfor %}",
        LEFT,
    ),
    (
        "{% for x in numbers %}{% filter upper %}a{{ x }}{% if x == 1 %}{% break %}{% endif %}{% endfilter %}{% endfor %}",
        LEFT,
    ),
    (
        "{{ (messages | selectattr('role', 'eq', 'user'))[0] }}",
        INDEX,
    ),
    ("{{ nested.items()[0] }}", INDEX),
    ("{{ {1: 'x', true: 'w'} }}", KEYS),
    ("{{ {[1]: 2} }}", KEYS),
    ("{{ range(3) }}", SHOWN),
    ("{% for x in numbers %}{{ loop }}{% endfor %}", SHOWN),
    (
        "{% macro m(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, x=4) }}",
        MACROS,
    ),
    (
        "{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}{{ m.name }}{{ m.arguments | list }}",
        MACROS,
    ),
    (
        "{% set ns = namespace() %}{% set ns._x = 1 %}{{ ns._x }}",
        "a namespace takes any name: nothing of the program is behind it",
    ),
    (
        "{% for k, v in [{'x': 'A'}, {'x': 'a'}] | groupby('x') %}{{ k }}{% endfor %}",
        "minijinja names a group of texts by its last spelling, Jinja by its first",
    ),
    (
        "{{ ('<b>' | safe) + '<c>' }}{{ '<c>' + ('<b>' | safe) }}{{ ['<a>', '<b>' | safe] | join('<') }}",
        "a chat is no HTML: a text that is marked as safe changes nothing beside it",
    ),
];

#[test]
fn pieces_of_templates_render_as_in_jinja() {
    let file = golden("expressions");
    let conversation = Conversation {
        messages: file["messages"].as_array().unwrap().clone(),
        names: file["names"].as_object().unwrap().clone(),
        date: Some(file["date"].as_str().unwrap().parse().unwrap()),
    };
    let specials = serde_json::json!({"bos_token": "<s>", "eos_token": "</s>"});
    let mut different: BTreeMap<&str, &str> = DIFFERENT.into_iter().collect();
    let (mut equal, mut faults) = (0, Vec::new());
    let cases = file["cases"].as_array().unwrap();
    for case in cases {
        let source = case[0].as_str().unwrap();
        let rendered = with_template(source, &specials).render_chat(&conversation, false);
        let same = match (&rendered, case[1].as_str()) {
            (Ok(rendered), Some(text)) => rendered.text == text,
            (Err(error), None) => error.code() == "tokenizer.template",
            _ => false,
        };
        match (same, different.remove(source)) {
            (true, None) => equal += 1,
            (false, Some(REFUSED | LEFT)) => assert_eq!(
                rendered.unwrap_err().code(),
                "tokenizer.template",
                "{source}"
            ),
            (false, Some(_)) | (true, Some(KEYS)) => {}
            (true, Some(_)) => faults.push(format!("{source}\n  is equal: no known difference")),
            (false, None) => faults.push(format!(
                "{source}\n  Jinja2: {}\n  tabtune: {rendered:?}",
                case[1]
            )),
        }
    }
    println!(
        "{equal} of {} pieces of templates are equal, {} are known differences",
        cases.len(),
        DIFFERENT.len()
    );
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(different.is_empty(), "in no case: {different:?}");
    assert!(equal >= 380);
}
