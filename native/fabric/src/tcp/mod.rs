//! Placeholder until the fabric lands.
#![allow(missing_docs, clippy::all)]
use crate::*;
pub struct TcpConfig { pub bind: std::net::SocketAddr, pub advertise: String, pub endpoint: EndpointId, pub pool: Arc<faro_pool::Pool> }
pub struct TcpFabric;
impl TcpFabric { pub fn new(_c: TcpConfig) -> Result<Self, FabricError> { todo!() } }
impl Fabric for TcpFabric {
 fn kind(&self)->FabricKind{todo!()} fn location(&self)->String{todo!()} fn waker(&self)->Waker{todo!()}
 fn connect(&mut self,_:&str,_:EndpointId,_:Instant)->Result<PeerId,FabricError>{todo!()}
 fn disconnect(&mut self,_:PeerId,_:CloseReason){} 
 fn expose(&mut self,_:PeerId,_:Exposure)->Result<RemoteRange,Rejected<Exposure>>{todo!()}
 fn revoke(&mut self,_:u64)->Revoked{todo!()}
 fn send(&mut self,_:PeerId,_:Message)->Result<(),Rejected<Message>>{todo!()}
 fn write(&mut self,_:PeerId,_:Write)->Result<(),Rejected<Write>>{todo!()}
 fn read(&mut self,_:PeerId,_:Read)->Result<(),Rejected<Read>>{todo!()}
 fn flush(&mut self){} fn poll(&mut self,_:&mut Vec<Event>,_:Duration)->Result<(),FabricError>{todo!()} fn counters(&self)->Vec<(&'static str,u64)>{todo!()}
}
