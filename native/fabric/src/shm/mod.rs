//! Placeholder until the fabric lands.
#![allow(missing_docs, clippy::all)]
use crate::*;
pub struct ShmConfig {
    pub endpoint: EndpointId,
    pub pool: Arc<faro_pool::Pool>,
}
pub struct ShmFabric;
impl ShmFabric {
    pub fn new(_c: ShmConfig) -> Result<crate::tcp::TcpFabric, FabricError> {
        todo!()
    }
}
