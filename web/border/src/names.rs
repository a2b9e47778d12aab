//! The names of fields in TypeScript: they change case here and nowhere else.

use std::any::type_name;
use std::cell::RefCell;
use std::collections::BTreeMap;

use serde::{Serialize, Serializer, ser};
use tabtune::bundle::InspectReport;
use tabtune::config::{ModelConfig, TrainConfig};
use tabtune::error::Refusal;
use tabtune::portable::ModelIoCompatibilityContract;
use tabtune::state::{Base, ModelIoArtifactReceipt};

/// Returns the name of a type without its module, as serde has it.
fn short<T>() -> &'static str {
    let name = type_name::<T>();
    name.rsplit("::").next().unwrap_or(name)
}

/// Returns the documents: with everything in them, they have Rust's names everywhere.
fn documents() -> [&'static str; 7] {
    [
        short::<Base>(),
        short::<InspectReport>(),
        short::<ModelConfig>(),
        short::<ModelIoArtifactReceipt>(),
        short::<ModelIoCompatibilityContract>(),
        short::<Refusal>(),
        short::<TrainConfig>(),
    ]
}

/// Returns the name in TypeScript of one in Rust: `optimizer.weight_decay` is `optimizer.weightDecay`.
pub fn camel(name: &str) -> String {
    let mut words = name.split('_');
    let mut camel = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        camel.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        camel.push_str(letters.as_str());
    }
    camel
}

thread_local! {
    static DOCUMENTS: [&'static str; 7] = documents();
    /// Names of fields with several words. Each is made once, since serializers compare names by their addresses.
    static NAMES: RefCell<BTreeMap<&'static str, &'static str>> = const { RefCell::new(BTreeMap::new()) };
}

/// Returns true if the type of this name is a document.
pub fn is_document(name: &str) -> bool {
    DOCUMENTS.with(|documents| documents.contains(&name))
}

fn field(name: &'static str) -> &'static str {
    if !name.contains('_') {
        return name;
    }
    NAMES.with_borrow_mut(|names| {
        let made = || &*Box::leak(camel(name).into_boxed_str());
        *names.entry(name).or_insert_with(made)
    })
}

/// A value whose fields have their names in TypeScript. The keys of maps are data and stay, as do the names in documents.
pub struct Named<'a, T: ?Sized>(pub &'a T);

impl<T: ?Sized + Serialize> Serialize for Named<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(Renaming(serializer))
    }
}

/// A serializer, or a part of one, that renames the fields that pass through it.
struct Renaming<S>(S);

macro_rules! plain {
    ($($method:ident($type:ty))*) => { $(
        fn $method(self, value: $type) -> Result<S::Ok, S::Error> {
            self.0.$method(value)
        }
    )* };
}

impl<S: Serializer> Serializer for Renaming<S> {
    type Ok = S::Ok;
    type Error = S::Error;
    type SerializeSeq = Renaming<S::SerializeSeq>;
    type SerializeTuple = Renaming<S::SerializeTuple>;
    type SerializeTupleStruct = Renaming<S::SerializeTupleStruct>;
    type SerializeTupleVariant = Renaming<S::SerializeTupleVariant>;
    type SerializeMap = Renaming<S::SerializeMap>;
    type SerializeStruct = Fields<S::SerializeStruct>;
    type SerializeStructVariant = Renaming<S::SerializeStructVariant>;

    plain! {
        serialize_bool(bool)
        serialize_i8(i8) serialize_i16(i16) serialize_i32(i32) serialize_i64(i64)
        serialize_u8(u8) serialize_u16(u16) serialize_u32(u32) serialize_u64(u64)
        serialize_f32(f32) serialize_f64(f64)
        serialize_char(char) serialize_str(&str) serialize_bytes(&[u8])
        serialize_unit_struct(&'static str)
    }

    fn serialize_none(self) -> Result<S::Ok, S::Error> {
        self.0.serialize_none()
    }

    fn serialize_some<T: ?Sized + Serialize>(self, value: &T) -> Result<S::Ok, S::Error> {
        self.0.serialize_some(&Named(value))
    }

    fn serialize_unit(self) -> Result<S::Ok, S::Error> {
        self.0.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
    ) -> Result<S::Ok, S::Error> {
        self.0.serialize_unit_variant(name, index, variant)
    }

    fn serialize_newtype_struct<T: ?Sized + Serialize>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        self.0.serialize_newtype_struct(name, &Named(value))
    }

    fn serialize_newtype_variant<T: ?Sized + Serialize>(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        self.0
            .serialize_newtype_variant(name, index, variant, &Named(value))
    }

    fn serialize_seq(self, len: Option<usize>) -> Result<Self::SerializeSeq, S::Error> {
        self.0.serialize_seq(len).map(Renaming)
    }

    fn serialize_tuple(self, len: usize) -> Result<Self::SerializeTuple, S::Error> {
        self.0.serialize_tuple(len).map(Renaming)
    }

    fn serialize_tuple_struct(
        self,
        name: &'static str,
        len: usize,
    ) -> Result<Self::SerializeTupleStruct, S::Error> {
        self.0.serialize_tuple_struct(name, len).map(Renaming)
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Self::SerializeTupleVariant, S::Error> {
        self.0
            .serialize_tuple_variant(name, index, variant, len)
            .map(Renaming)
    }

    fn serialize_map(self, len: Option<usize>) -> Result<Self::SerializeMap, S::Error> {
        self.0.serialize_map(len).map(Renaming)
    }

    fn serialize_struct(
        self,
        name: &'static str,
        len: usize,
    ) -> Result<Self::SerializeStruct, S::Error> {
        let renames = !is_document(name);
        let fields = self.0.serialize_struct(name, len)?;
        Ok(Fields { fields, renames })
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Self::SerializeStructVariant, S::Error> {
        self.0
            .serialize_struct_variant(name, index, variant, len)
            .map(Renaming)
    }
}

macro_rules! elements {
    ($($kind:ident $method:ident)*) => { $(
        impl<S: ser::$kind> ser::$kind for Renaming<S> {
            type Ok = S::Ok;
            type Error = S::Error;

            fn $method<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), S::Error> {
                self.0.$method(&Named(value))
            }

            fn end(self) -> Result<S::Ok, S::Error> {
                self.0.end()
            }
        }
    )* };
}

elements! {
    SerializeSeq serialize_element
    SerializeTuple serialize_element
    SerializeTupleStruct serialize_field
    SerializeTupleVariant serialize_field
}

impl<S: ser::SerializeMap> ser::SerializeMap for Renaming<S> {
    type Ok = S::Ok;
    type Error = S::Error;

    fn serialize_key<T: ?Sized + Serialize>(&mut self, key: &T) -> Result<(), S::Error> {
        self.0.serialize_key(key)
    }

    fn serialize_value<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), S::Error> {
        self.0.serialize_value(&Named(value))
    }

    fn end(self) -> Result<S::Ok, S::Error> {
        self.0.end()
    }
}

/// The fields of a struct; those of a document are not renamed.
struct Fields<S> {
    fields: S,
    renames: bool,
}

impl<S: ser::SerializeStruct> ser::SerializeStruct for Fields<S> {
    type Ok = S::Ok;
    type Error = S::Error;

    fn serialize_field<T: ?Sized + Serialize>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), S::Error> {
        if self.renames {
            self.fields.serialize_field(field(key), &Named(value))
        } else {
            self.fields.serialize_field(key, value)
        }
    }

    fn end(self) -> Result<S::Ok, S::Error> {
        self.fields.end()
    }
}

impl<S: ser::SerializeStructVariant> ser::SerializeStructVariant for Renaming<S> {
    type Ok = S::Ok;
    type Error = S::Error;

    fn serialize_field<T: ?Sized + Serialize>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), S::Error> {
        self.0.serialize_field(field(key), &Named(value))
    }

    fn end(self) -> Result<S::Ok, S::Error> {
        self.0.end()
    }
}
