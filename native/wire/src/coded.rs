//! Enumerations that travel as a `u32`.

/// Defines an enumeration with its codes. `TryFrom<u32>` gives `BadValue` with the literal as its `what`
/// for any other number.
macro_rules! coded {
    (
        $(#[$about:meta])*
        pub enum $name:ident: $what:literal {
            $($(#[$doc:meta])* $variant:ident = $code:literal,)*
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u32)]
        pub enum $name {
            $($(#[$doc])* $variant = $code,)*
        }

        impl TryFrom<u32> for $name {
            type Error = $crate::WireError;
            fn try_from(value: u32) -> Result<Self, Self::Error> {
                match value {
                    $($code => Ok(Self::$variant),)*
                    got => Err($crate::WireError::BadValue {
                        what: $what,
                        got: u64::from(got),
                    }),
                }
            }
        }
    };
}
