//! The parameters of kernels: as Rust structs, and as words of a buffer.

/// The parameters of a kernel: a struct with the fields of the shader's `Params`, in their order.
pub trait KernelParams: Copy {
    /// Names and WGSL types of the fields.
    const FIELDS: &'static [(&'static str, &'static str)];
    /// True if the fields change from step to step, as rates and noise do. All other parameters keep the values with which a step was recorded.
    const VARIES: bool;
    /// The struct as words.
    fn words(&self) -> Vec<u32>;
    /// Makes the struct from words.
    ///
    /// # Panics
    ///
    /// If there are fewer words than the fields have.
    fn from_words(words: &[u32]) -> Self;
}

/// A type that a field of `Params` may have: a [`Word`], or for the last field a [`Noise`](crate::gpu::noise::Noise).
pub trait Field: Copy {
    /// The name of the type in WGSL.
    const WGSL: &'static str;
    /// Appends the words of the field, at the place where the shader expects them.
    fn put(self, words: &mut Vec<u32>);
    /// Makes the field from the words at `at`, and moves `at` past them.
    ///
    /// # Panics
    ///
    /// If there are fewer words than the field has.
    fn take(words: &[u32], at: &mut usize) -> Self;
}

impl<W: Word> Field for W {
    const WGSL: &'static str = <W as Word>::WGSL;

    fn put(self, words: &mut Vec<u32>) {
        words.push(self.to_word());
    }

    fn take(words: &[u32], at: &mut usize) -> Self {
        *at += 1;
        W::from_word(words[*at - 1])
    }
}

/// A type of one 32-bit word.
pub trait Word: Copy {
    /// The name of the type in WGSL.
    const WGSL: &'static str;
    /// The bits of the value.
    fn to_word(self) -> u32;
    /// Makes the value from its bits.
    fn from_word(word: u32) -> Self;
}

impl Word for u32 {
    const WGSL: &'static str = "u32";
    fn to_word(self) -> u32 {
        self
    }
    fn from_word(word: u32) -> Self {
        word
    }
}

/// A number of elements, or an index: the shader has 32 bits for it.
impl Word for usize {
    const WGSL: &'static str = "u32";
    fn to_word(self) -> u32 {
        self as u32
    }
    fn from_word(word: u32) -> Self {
        word as usize
    }
}

/// A switch, which the shader reads as 0 or 1.
impl Word for bool {
    const WGSL: &'static str = "u32";
    fn to_word(self) -> u32 {
        u32::from(self)
    }
    fn from_word(word: u32) -> Self {
        word != 0
    }
}

impl Word for i32 {
    const WGSL: &'static str = "i32";
    fn to_word(self) -> u32 {
        self as u32
    }
    fn from_word(word: u32) -> Self {
        word as i32
    }
}

impl Word for f32 {
    const WGSL: &'static str = "f32";
    fn to_word(self) -> u32 {
        self.to_bits()
    }
    fn from_word(word: u32) -> Self {
        f32::from_bits(word)
    }
}
