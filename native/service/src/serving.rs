//! The endpoint that serves an application's outputs, and the thread that tells it where their files are.

use crate::message::Hello;
use crate::options::Options;
use crate::port::Port;
use crate::store::Store;
use faro_endpoint::{
    Budget, CommandHandler, Config, Endpoint, EndpointError, Protection, Security, SharedSecret,
};
use faro_wire::OutputId;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// Questions of readers that are answered together.
const QUESTIONS: usize = 64;
/// How long a resolver waits before it looks whether its endpoint is closed.
const QUESTION_WAIT: Duration = Duration::from_millis(200);
/// Without progress, before a reader's request ends.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
const IDLE_MEMORY: Duration = Duration::from_secs(60);
const IDLE_CONNECTION: Duration = Duration::from_secs(60);
/// Opens the endpoint, behind the port of all applications.
///
/// # Errors
/// The endpoint's.
pub(crate) fn open(
    hello: &Hello,
    (options, memory, port): (&Options, &Arc<Budget>, &Port),
    commands: Arc<dyn CommandHandler>,
) -> Result<Arc<Endpoint>, EndpointError> {
    Endpoint::start(Config {
        name: "service".to_owned(),
        fabric: options.fabric,
        bind: options.bind,
        advertise: options.advertise,
        shared_port: Some(port.shared()),
        memory_budget: Some(Arc::clone(memory)),
        beside_bytes: Some(options.table_bytes_of_each()),
        idle_release: IDLE_MEMORY,
        connection_idle: IDLE_CONNECTION,
        request_timeout: REQUEST_TIMEOUT,
        security: security(&hello.application, hello.sealed, &hello.secret),
        commands: Some(commands),
        ..Config::default()
    })
}

/// Of a member of the application. An empty secret is none.
pub(crate) fn security(application: &str, sealed: bool, secret: &[u8]) -> Security {
    Security {
        protection: match sealed {
            true => Protection::Sealed,
            false => Protection::Clear,
        },
        application: application.to_owned(),
        secret: (!secret.is_empty()).then(|| SharedSecret::new(secret.to_vec())),
    }
}

/// Starts the thread that answers which files an output of the endpoint has, until the endpoint is closed.
///
/// # Errors
/// `Thread`.
pub(crate) fn resolver(
    endpoint: Arc<Endpoint>,
    store: Arc<Store>,
) -> Result<JoinHandle<()>, EndpointError> {
    std::thread::Builder::new()
        .name("faro-resolver".to_owned())
        .spawn(move || {
            while !endpoint.is_closed() {
                for id in endpoint.unresolved(QUESTIONS, QUESTION_WAIT) {
                    answer(&endpoint, &store, id);
                }
            }
        })
        .map_err(EndpointError::Thread)
}

/// Tells the endpoint where the files of an output are, if they are here.
pub(crate) fn answer(endpoint: &Endpoint, store: &Store, id: OutputId) {
    // `found` keeps the files open until the endpoint has opened them: their paths are good for no longer.
    let found = store.find(id);
    endpoint.resolve(id, found.as_ref().map(|found| found.files.clone()));
}
