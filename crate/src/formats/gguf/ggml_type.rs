//! The tensor types of ggml: their names and block sizes.

/// Highest type number that has a name here.
const LAST_ID: u32 = 42;

/// A tensor type of ggml.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GgmlType {
    /// Type number in the file.
    pub id: u32,
    /// Name; `None` for an unknown type.
    name: Option<&'static str>,
    /// Elements and bytes of a block; `None` for types whose size is unknown or that never occur in files.
    pub block: Option<(u64, u64)>,
}

impl GgmlType {
    /// The type with this number, which may be one without a name.
    pub const fn from_id(id: u32) -> Self {
        let (name, elements, bytes) = match id {
            0 => ("F32", 1, 4),
            1 => ("F16", 1, 2),
            2 => ("Q4_0", 32, 18),
            3 => ("Q4_1", 32, 20),
            6 => ("Q5_0", 32, 22),
            7 => ("Q5_1", 32, 24),
            8 => ("Q8_0", 32, 34),
            9 => ("Q8_1", 0, 0),
            10 => ("Q2_K", 256, 84),
            11 => ("Q3_K", 256, 110),
            12 => ("Q4_K", 256, 144),
            13 => ("Q5_K", 256, 176),
            14 => ("Q6_K", 256, 210),
            15 => ("Q8_K", 0, 0),
            16 => ("IQ2_XXS", 256, 66),
            17 => ("IQ2_XS", 256, 74),
            18 => ("IQ3_XXS", 256, 98),
            19 => ("IQ1_S", 256, 50),
            20 => ("IQ4_NL", 32, 18),
            21 => ("IQ3_S", 256, 110),
            22 => ("IQ2_S", 256, 82),
            23 => ("IQ4_XS", 256, 136),
            24 => ("I8", 1, 1),
            25 => ("I16", 1, 2),
            26 => ("I32", 1, 4),
            27 => ("I64", 1, 8),
            28 => ("F64", 1, 8),
            29 => ("IQ1_M", 256, 56),
            30 => ("BF16", 1, 2),
            34 => ("TQ1_0", 256, 54),
            35 => ("TQ2_0", 256, 66),
            39 => ("MXFP4", 32, 17),
            40 => ("NVFP4", 64, 36),
            41 => ("Q1_0", 128, 18),
            42 => ("Q2_0", 64, 18),
            _ => {
                return Self {
                    id,
                    name: None,
                    block: None,
                };
            }
        };
        let block = if elements > 0 {
            Some((elements, bytes))
        } else {
            None
        };
        Self {
            id,
            name: Some(name),
            block,
        }
    }

    /// The type with this name in ggml, such as `Q8_0`.
    pub fn from_name(name: &str) -> Option<Self> {
        (0..=LAST_ID)
            .map(Self::from_id)
            .find(|known| known.name == Some(name))
    }

    /// The block type that a dtype word names, such as `GGML:Q8_0`.
    pub fn of_dtype(word: &str) -> Option<Self> {
        Self::from_name(word.strip_prefix("GGML:")?).filter(|found| found.dtype() == word)
    }

    /// The type with this dtype word, as [`Self::dtype`] writes it.
    pub fn of_word(word: &str) -> Option<Self> {
        let number = || word.strip_prefix("GGML:")?.parse().ok().map(Self::from_id);
        Self::of_dtype(word)
            .or_else(|| Self::from_name(word))
            .or_else(number)
            .filter(|found| found.dtype() == word)
    }

    /// The dtype word: that of safetensors for plain numbers, `GGML:<name or number>` for everything else.
    pub fn dtype(self) -> String {
        match (self.name, self.block) {
            (Some(name), Some((1, _))) => name.to_string(),
            (Some(name), _) => format!("GGML:{name}"),
            (None, _) => format!("GGML:{}", self.id),
        }
    }
}
