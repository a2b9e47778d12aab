//! Expressions of the rules, and the parts that several of them have.

/// Contractions in both cases, as in Llama 3 and most later rules.
macro_rules! contractions {
    () => {
        "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
    };
}

/// Signs with the line ends after them, line ends, spaces: the end of most rules.
macro_rules! signs {
    () => {
        r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    };
}

/// As `signs`, with slashes among the line ends.
macro_rules! slashed {
    () => {
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    };
}

/// Words in which a capital begins a new one, with what may follow each. llama.cpp knows the case of ASCII letters only.
macro_rules! cased {
    ($letters:literal, $after:expr) => {
        concat!(
            r"[^\r\n\p{L}\p{N}]?[",
            $letters,
            "&&[^a-z]]*[",
            $letters,
            "&&[^A-Z]]+",
            $after,
            r"|[^\r\n\p{L}\p{N}]?[",
            $letters,
            "&&[^a-z]]+[",
            $letters,
            "&&[^A-Z]]*",
            $after
        )
    };
}

/// Han characters as llama.cpp counts them.
macro_rules! han {
    () => {
        r"\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{20000}-\x{2A6DF}\x{2A700}-\x{2EBEF}\x{F900}-\x{FAFF}\x{2F800}-\x{2FA1F}"
    };
}

pub(super) use {cased, contractions, han, signs, slashed};

/// GPT-2's expression, which a `ByteLevel` with `use_regex` has.
pub(in crate::tokenizer) const GPT2: &str =
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
/// Single digits, which a `Digits` with `individual_digits` splits off.
pub(in crate::tokenizer) const DIGIT: &str = r"\p{N}";
/// Whole numbers, which another `Digits` splits off.
pub(in crate::tokenizer) const NUMBER: &str = r"\p{N}+";
/// Llama 3: contractions, words with one leading sign, numbers of up to three digits, signs, line ends, spaces.
pub(in crate::tokenizer) const LLAMA_BPE: &str = concat!(
    contractions!(),
    r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|",
    signs!()
);
/// Qwen2: as Llama 3, but with single digits.
pub(in crate::tokenizer) const QWEN2: &str = concat!(
    contractions!(),
    r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|",
    signs!()
);

pub(super) const THOUSANDS: &str = r"\p{N}{1,3}";
/// Groups of three digits, counted from the right.
pub(super) const THOUSANDS_FROM_RIGHT: &str = r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))";
pub(super) const LINE_END: &str = r"[\r\n]";
pub(super) const HANGUL_AND_HAN: &str = "[一-龥ࠀ-一가-퟿]+";
pub(super) const KANA_AND_HAN: &str = "[一-龥぀-ゟ゠-ヿ]+";
pub(super) const LATIN_AND_GREEK: &str = concat!(
    r"\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-",
    r"ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ",
    r"-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+"
);
/// Signs as llama.cpp matches them: without the ideographic space, which it takes for another one.
pub(super) const WIDE_SIGNS: &str = r"\s?[!-/:-~！-／：-～‘-‟、。]+";
pub(super) const WIDE_SIGNS_PUBLISHED: &str = r"\s?[!-/:-~！-／：-～‘-‟　-。]+";
pub(super) const SIGNED_WORDS: &str = concat!(
    r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|"##,
    r" ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
);
pub(super) const SIGNED_WORDS_ALONE: &str = concat!(
    r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|"##,
    r" ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+"
);
pub(super) const BLOOM: &str = r" ?[^(\s|.,!?…。，、।۔،)]+";
pub(super) const BLOOM_PUBLISHED: &str = r" ?[^(\s|[.,!?…。，、।۔،])]+";
pub(super) const ASIAN: &str = "[一-鿿㐀-䶿豈-﫿぀-ゟ゠-ヿ･-ﾟ⼀-⿟เ-๿຀-໿ក-៿က-႟ꩠ-ꩿꧠ-꧿가-힯ᄀ-ᇿ]+";
pub(super) const EAST_ASIAN: &str =
    "[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+";
