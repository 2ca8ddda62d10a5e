//! What both directions agree on: the headers, modes and bits of blocks (docs/design/row-block-format.md).

pub(crate) mod bits;
pub(crate) mod block;
pub(crate) mod body;
pub(crate) mod codec;
pub(crate) mod corruption;
pub(crate) mod fault;
pub(crate) mod mode;
pub(crate) mod stats;
