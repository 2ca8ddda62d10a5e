//! Enumerations that travel as a `u32`.

/// An enumeration with its codes; a number that is none of them is `BadValue` of what is named.
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
