//! The table of the rules.

use super::patterns::{
    ASIAN, BLOOM, BLOOM_PUBLISHED, DIGIT, EAST_ASIAN, GPT2, HANGUL_AND_HAN, KANA_AND_HAN,
    LATIN_AND_GREEK, LINE_END, LLAMA_BPE, NUMBER, QWEN2, SIGNED_WORDS, SIGNED_WORDS_ALONE,
    THOUSANDS, THOUSANDS_FROM_RIGHT, WIDE_SIGNS, WIDE_SIGNS_PUBLISHED, cased, contractions, han,
    signs, slashed,
};
use super::{Beginning, Pre};

/// All rules; of those with equal expressions the first is written by exports. Words without a rule here split other than byte-level tokens
/// (`gemma4`, `sarvam-moe`, `whitespace`), or stand for no rule (`default`).
pub(super) static RULES: [Pre; 30] = [
    Pre::new(
        &[
            "gpt-2",
            "phi-2",
            "jina-es",
            "jina-de",
            "jina-v1-en",
            "jina-v2-es",
            "jina-v2-de",
            "jina-v2-code",
            "roberta-bpe",
            "gigachat",
            "a.x-4.0",
            "mellum",
            "modern-bert",
            "mpt",
            "olmo",
            "jais",
            "trillion",
            "granite-docling",
            "exaone4",
        ],
        &[GPT2],
    ),
    Pre::new(
        &[
            "smollm",
            "starcoder",
            "refact",
            "command-r",
            "codeshell",
            "exaone",
            "minerva-7b",
            "mellum2",
        ],
        &[DIGIT, GPT2],
    ),
    Pre::new(
        &[
            "llama-bpe",
            "llama3",
            "llama-v3",
            "falcon3",
            "falcon-h1",
            "pixtral",
            "midm-2.0",
            "lfm2",
            "jina-v5-nano",
        ],
        &[LLAMA_BPE],
    )
    .whole(Beginning::Written),
    Pre::new(
        &[
            "qwen2",
            "deepseek-r1-qwen",
            "kormo",
            "f2llmv2",
            "megrez",
            "stablelm2",
            "hunyuan",
            "solar-open",
            "grok-2",
            "bailingmoe",
            "bailingmoe2",
            "llada-moe",
        ],
        &[QWEN2],
    ),
    Pre::new(&["dbrx", "smaug-bpe"], &[LLAMA_BPE]),
    Pre {
        beginning: Beginning::Absent,
        ..Pre::new(&["chatglm-bpe"], &[LLAMA_BPE])
    },
    Pre::new(&["glm4", "glm5"], &[LLAMA_BPE]).whole(Beginning::Absent),
    Pre::new(
        &["deepseek-llm"],
        &[
            LINE_END,
            LATIN_AND_GREEK,
            WIDE_SIGNS,
            r"\s+$",
            HANGUL_AND_HAN,
            NUMBER,
        ],
    )
    .also(&[&[
        LINE_END,
        LATIN_AND_GREEK,
        WIDE_SIGNS_PUBLISHED,
        r"\s+$",
        HANGUL_AND_HAN,
        DIGIT,
    ]]),
    Pre::new(
        &["deepseek-coder"],
        &[LINE_END, r"\s?\p{L}+", r"\s?\p{P}+", HANGUL_AND_HAN, DIGIT],
    ),
    Pre::new(
        &["deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"],
        &[THOUSANDS, KANA_AND_HAN, SIGNED_WORDS],
    ),
    Pre::new(
        &["spark2_5"],
        &[THOUSANDS, KANA_AND_HAN, SIGNED_WORDS_ALONE, DIGIT],
    ),
    Pre::new(
        &["youtu"],
        &[
            EAST_ASIAN,
            concat!(
                r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+",
                contractions!(),
                r"?|\p{N}|",
                slashed!()
            ),
        ],
    )
    .whole(Beginning::Known),
    Pre::new(
        &["falcon"],
        &[r"[\p{P}\$\+<=>\^~\|`]+", GPT2, "[0-9][0-9][0-9]"],
    ),
    Pre::new(
        &["qwen35"],
        &[concat!(
            contractions!(),
            r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
        )],
    ),
    Pre::new(&["bloom", "poro-chat", "gpt3-finnish"], &[BLOOM]).also(&[&[BLOOM_PUBLISHED]]),
    Pre::new(&["viking"], &[BLOOM, DIGIT]).also(&[&[BLOOM_PUBLISHED, DIGIT]]),
    Pre::new(
        &["tekken"],
        &[concat!(cased!(r"\p{L}", ""), r"|\p{N}|", slashed!())],
    )
    .whole(Beginning::Written),
    Pre {
        beginning: Beginning::Written,
        ..Pre::new(
            &["chameleon"],
            &[
                "<sentinel:[0-9]+>",
                "IMGIMG[A-I]{1,4}Z",
                r"[\t\n]|    |  ",
                DIGIT,
                r"[\p{P}!-/:-@\[-`{-~]",
                GPT2,
            ],
        )
    },
    Pre::new(
        &["gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"],
        &[concat!(
            cased!(r"\p{L}", concat!(contractions!(), "?")),
            r"|\p{N}{1,3}|",
            slashed!()
        )],
    ),
    Pre::new(
        &["granite-embed-multi-97m"],
        &[concat!(
            cased!(r"\p{L}\p{M}", concat!(contractions!(), "?")),
            r"|\p{N}{1,3}|",
            slashed!()
        )],
    )
    .whole(Beginning::Known),
    Pre::new(
        &["tiny_aya", "cohere2moe"],
        &[
            THOUSANDS_FROM_RIGHT,
            concat!(
                r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+",
                contractions!(),
                r"?|\p{N}{1,3}|",
                slashed!()
            ),
        ],
    ),
    Pre::new(
        &["kimi-k2"],
        &[concat!(
            "[",
            han!(),
            r"]+|[^\r\n\p{L}\p{N}]?[\p{L}&&[^",
            han!(),
            "]]+",
            contractions!(),
            r"?|\p{N}{1,3}|",
            signs!()
        )],
    ),
    Pre::new(&["superbpe"], &[NUMBER, r"(?=([0-9]{3})+(?![0-9]))"])
        .also(&[&[NUMBER, r"(?=(\d{3})+(?!\d))"]]),
    Pre::new(
        &["seed-coder"],
        &[concat!(
            contractions!(),
            r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+"
        )],
    ),
    Pre::new(
        &["ufakzeka"],
        &[concat!(r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|", signs!())],
    ),
    Pre::new(&["afmoe"], &[THOUSANDS_FROM_RIGHT, ASIAN, SIGNED_WORDS]),
    Pre::new(&["laguna"], &[r"[^\n]+|[\n]+", QWEN2]),
    Pre::new(
        &["exaone-moe"],
        &[concat!(
            contractions!(),
            r"|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+"
        )],
    ),
    Pre::new(
        &["minicpm5"],
        &[
            THOUSANDS,
            concat!(
                contractions!(),
                r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+|",
                signs!()
            ),
        ],
    )
    .whole(Beginning::Known),
    Pre::new(
        &["jais-2"],
        &[concat!(
            contractions!(),
            r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)",
            r"|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1}"
        )],
    ),
];
