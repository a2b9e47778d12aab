//! Answers in a conversation: their ends, and the tokens that are computed for them.

use serde_json::json;
use tabtune::generate::{End, GenerateConfig, GeneratedToken, Generator, Prefix, PrefixCache};
use tabtune::model::Model;
use tabtune::tokenizer::{Conversation, Tokenizer, TokenizerParts};
use tabtune_tests::{block_on, devices};

use crate::tokenizer::byte_level;

const TEXT: u32 = 0;
const OPEN: u32 = 1;
const TURN: u32 = 2;

/// Returns a base model's tokenizer, whose texts end with `<|endoftext|>` only.
fn base(template: &str) -> Tokenizer {
    Tokenizer::from_parts(TokenizerParts {
        eos: vec![TEXT],
        chat_template: Some(template.into()),
        ..byte_level("smollm")
    })
    .unwrap()
}

const CHATML: &str = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}\
    {% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

#[test]
fn the_end_of_a_turn_is_the_first_special_token_after_an_answer() {
    for (template, expected) in [
        (CHATML, Some(TURN)),
        // The end of a text after the end of the turn, as Phi-3 writes it.
        (
            "{% for m in messages %}{{ m.content }}<|im_end|>\n{% endfor %}<|endoftext|>",
            Some(TURN),
        ),
        // The next turn is opened although it was not requested.
        (
            "{% for m in messages %}<|im_start|>{{ m.content }}<|im_end|>{% endfor %}<|im_start|>",
            Some(TURN),
        ),
        // Only the next turn ends one.
        (
            "{% for m in messages %}<|im_start|>{{ m.content }}{% endfor %}<|im_start|>",
            Some(OPEN),
        ),
        (
            "{% for m in messages %}<|im_start|>{{ m.content }}\n{% endfor %}",
            Some(OPEN),
        ),
        // The contents of the next message are not the end of a turn.
        (
            "{% for m in messages %}{{ m.content }}\n{% if loop.index == 3 %}.<|im_start|>{% endif %}{% endfor %}",
            None,
        ),
        ("{% for m in messages %}{{ m.content }}\n{% endfor %}", None),
        (
            "{% for m in messages %}<|im_start|>{{ m.role }}{% endfor %}",
            None,
        ),
        ("{{ raise_exception('no') }}", None),
    ] {
        assert_eq!(base(template).turn_end(), expected, "{template}");
    }
    assert_eq!(base(CHATML).stops(), [TEXT, TURN]);
    assert_eq!(
        Tokenizer::from_parts(byte_level("smollm")).unwrap().stops(),
        [TURN, TEXT]
    );
    let bare = Tokenizer::from_parts(TokenizerParts {
        chat_template: None,
        eos: vec![TEXT],
        ..byte_level("smollm")
    })
    .unwrap();
    assert_eq!((bare.turn_end(), bare.stops()), (None, vec![TEXT]));
}

fn said(turns: &[(&str, &str)]) -> Conversation {
    Conversation::new(
        turns
            .iter()
            .map(|(role, content)| json!({"role": role, "content": content}))
            .collect(),
    )
}

const GREEDY: GenerateConfig = GenerateConfig {
    max_tokens: 6,
    temperature: 0.0,
    top_k: 0,
    top_p: 1.0,
    seed: 0,
    top_logprobs: 0,
};

fn all(
    model: &Model,
    tokenizer: &Tokenizer,
    mut generator: Generator,
) -> (Vec<GeneratedToken>, Prefix) {
    let mut tokens = Vec::new();
    while let Some(token) = block_on(generator.next(model, tokenizer)).unwrap() {
        tokens.push(token);
    }
    (tokens, generator.into_prefix())
}

/// Whatever is reused from the turn before, the answer is that of the conversation alone, and only a common beginning is reused.
#[test]
fn an_answer_is_the_same_from_what_is_computed_already() {
    let tokenizer = base(CHATML);
    let ids = |conversation: &Conversation| {
        tokenizer
            .encode(&tokenizer.render_chat(conversation, true).unwrap().text)
            .unwrap()
    };
    for device in devices() {
        let model = super::model_of(800, 256, &device);
        let first = said(&[("system", "Be brief."), ("user", "Is it Bennet?")]);
        let alone =
            Generator::answer(&model, &tokenizer, &first, GREEDY, Prefix::default()).unwrap();
        assert_eq!(alone.progress(), (0, ids(&first).len()));
        let (tokens, prefix) = all(&model, &tokenizer, alone);
        // The last token ends the text, and nothing is computed after it.
        assert_eq!((tokens.len(), prefix.len()), (6, ids(&first).len() + 5));
        let answer: String = tokens.iter().map(|token| token.text.as_str()).collect();
        let computed = [
            ids(&first),
            tokens.iter().map(|token| token.id).take(5).collect(),
        ]
        .concat();
        for next in [
            said(&[
                ("system", "Be brief."),
                ("user", "Is it Bennet?"),
                ("assistant", &answer),
                ("user", "Why?"),
            ]),
            said(&[("system", "Be brief."), ("user", "Is it Darcy?")]),
            said(&[("user", "Is it Bennet?")]),
            first.clone(),
        ] {
            let ids = ids(&next);
            let common = ids
                .iter()
                .zip(&computed)
                .take_while(|(a, b)| a == b)
                .count()
                .min(ids.len() - 1);
            assert!(common > 0);
            let again =
                Generator::answer(&model, &tokenizer, &next, GREEDY, prefix.clone()).unwrap();
            assert_eq!(again.progress(), (common, ids.len() - common));
            let fresh =
                Generator::answer(&model, &tokenizer, &next, GREEDY, Prefix::default()).unwrap();
            let (again, fresh) = (
                all(&model, &tokenizer, again).0,
                all(&model, &tokenizer, fresh).0,
            );
            assert_eq!(again.len(), fresh.len());
            for (a, b) in again.iter().zip(&fresh) {
                assert!(
                    a.id == b.id && (a.logprob - b.logprob).abs() < 1e-4,
                    "{a:?} {b:?}"
                );
            }
        }
    }
}

/// An answer takes the prefix that the last one computed, and gives it back extended, unless the weights changed in between.
#[test]
fn a_cache_keeps_what_the_last_answer_computed_until_it_is_cleared() {
    let tokenizer = base(CHATML);
    let model = super::model_of(800, 256, &tabtune_tests::cpu());
    let cache = PrefixCache::default();
    let answer = |conversation: &Conversation, cleared: bool| {
        let (prefix, loan) = cache.take();
        assert!(cache.is_empty());
        let generator =
            Generator::answer(&model, &tokenizer, conversation, GREEDY, prefix).unwrap();
        let progress = generator.progress();
        let (tokens, prefix) = all(&model, &tokenizer, generator);
        if cleared {
            cache.clear();
        }
        loan.give_back(prefix);
        (progress, tokens)
    };
    let first = said(&[("user", "Is it Bennet?")]);
    let (progress, tokens) = answer(&first, false);
    assert_eq!(
        (progress.0, cache.len()),
        (0, progress.1 + tokens.len() - 1)
    );
    let text: String = tokens.iter().map(|token| token.text.as_str()).collect();
    let second = said(&[
        ("user", "Is it Bennet?"),
        ("assistant", &text),
        ("user", "Why?"),
    ]);
    let (again, of_second) = answer(&second, true);
    assert!(
        again.0 >= progress.1 && again.1 > 0,
        "{again:?} after {progress:?}"
    );
    // A prefix begun before the weights changed is not kept.
    assert!(cache.is_empty());
    let (fresh, alone) = answer(&second, false);
    assert_eq!((fresh.0, fresh.1), (0, again.0 + again.1));
    let ids = |tokens: &[GeneratedToken]| tokens.iter().map(|token| token.id).collect::<Vec<_>>();
    assert_eq!(ids(&of_second), ids(&alone));
    assert!(!cache.is_empty());
    cache.clear();
    assert_eq!(answer(&second, false).0, fresh);
}

/// The weights determine the first token; if it ends a turn, the answer is empty.
#[test]
fn the_end_of_a_turn_ends_an_answer_and_a_text() {
    let device = tabtune_tests::cpu();
    let model = super::model_of(800, 256, &device);
    let plain = base("{% for m in messages %}{{ m.content }}{% endfor %}");
    let first = all(
        &model,
        &plain,
        Generator::new(&model, &plain, "Bennet", GREEDY).unwrap(),
    )
    .0[0]
        .clone();
    let written = plain.token_text(first.id).unwrap();
    // The same vocabulary, in which the first token is special and ends the turns.
    let types = (0..800)
        .map(|id| if id < 3 || id == first.id { 3 } else { 1 })
        .collect();
    let template = format!(
        "{{% for m in messages %}}{{{{ m.content }}}}{{{{ {} }}}}{{% endfor %}}",
        json!(written)
    );
    let parts = TokenizerParts {
        types,
        eos: vec![TEXT],
        chat_template: Some(template),
        ..byte_level("smollm")
    };
    let ending = Tokenizer::from_parts(parts).unwrap();
    assert_eq!(ending.turn_end(), Some(first.id), "{written:?}");
    let mut generator = Generator::new(&model, &ending, "Bennet", GREEDY).unwrap();
    assert!(block_on(generator.next(&model, &ending)).unwrap().is_none());
    assert_eq!(generator.ended(), Some(End::Stop));
}

/// A template writes its own beginning, or none.
#[test]
fn nothing_is_put_before_what_a_template_writes() {
    let model = super::model_of(800, 64, &tabtune_tests::cpu());
    let template = Some("{{ messages[0].content }}".to_owned());
    let tokenizer = Tokenizer::from_parts(TokenizerParts {
        add_bos: Some(true),
        chat_template: template,
        ..byte_level("smollm")
    })
    .unwrap();
    let written = tokenizer.encode("Bennet").unwrap().len();
    assert_eq!(tokenizer.prompt_prefix().len(), 1);
    let answer = Generator::answer(
        &model,
        &tokenizer,
        &said(&[("user", "Bennet")]),
        GREEDY,
        Prefix::default(),
    )
    .unwrap();
    let text = Generator::new(&model, &tokenizer, "Bennet", GREEDY).unwrap();
    assert_eq!(
        (answer.progress(), text.progress()),
        ((0, written), (0, written + 1))
    );
}

#[test]
fn a_conversation_is_refused_before_anything_is_computed() {
    let device = tabtune_tests::cpu();
    let model = super::model_of(800, 16, &device);
    let tokenizer = base(CHATML);
    let long = Generator::answer(
        &model,
        &tokenizer,
        &said(&[("user", "Is it Bennet, or is it Darcy, or who is it?")]),
        GREEDY,
        Prefix::default(),
    );
    assert_eq!(long.err().unwrap().code(), "model.context");
    let bare = Tokenizer::from_parts(TokenizerParts {
        chat_template: None,
        ..byte_level("smollm")
    })
    .unwrap();
    let untold = Generator::answer(
        &model,
        &bare,
        &said(&[("user", "?")]),
        GREEDY,
        Prefix::default(),
    );
    assert!(
        untold
            .err()
            .unwrap()
            .to_string()
            .contains("no chat template")
    );
}
