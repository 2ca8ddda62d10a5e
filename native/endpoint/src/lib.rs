//! The executor endpoint.
