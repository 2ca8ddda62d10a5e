//! Errors and panics become Java exceptions; the class tells the caller how to handle them.

use crate::keys::key;
use faro_endpoint::collective::CollectiveError;
use faro_endpoint::EndpointError;
use faro_pool::PoolError;
use faro_service::ClientError;
use jni::errors::ErrorPolicy;
use jni::objects::{JString, JThrowable, JValue};
use jni::strings::JNIStr;
use jni::{jni_sig, jni_str, Env};
use std::any::Any;
use std::cell::RefCell;

/// The result of an entry point's body.
pub type EntryResult<T> = Result<T, Failure>;

/// Reason why a call from Java fails.
#[derive(Debug)]
pub enum Failure {
    /// A call of the JVM failed; an exception may be pending already.
    Jni(jni::errors::Error),
    /// A call of the endpoint failed.
    Endpoint(EndpointError),
    /// The handle of an endpoint is stale or unknown.
    NoEndpoint(u64),
    /// Another handle is stale or unknown; often it was released twice.
    NotHeld { what: &'static str, handle: u64 },
    /// A collective failed.
    Collective(CollectiveError),
    /// The node service failed the request.
    Service(ClientError),
    /// The call is not allowed now.
    State(String),
    /// A setting has a value that is not allowed.
    Config {
        key: String,
        value: String,
        allowed: String,
    },
    /// An argument is not allowed.
    Argument(String),
}

impl From<jni::errors::Error> for Failure {
    fn from(error: jni::errors::Error) -> Self {
        Self::Jni(error)
    }
}

impl From<EndpointError> for Failure {
    fn from(error: EndpointError) -> Self {
        match error {
            EndpointError::Pool(PoolError::LimitTooSmall { got, min }) => Self::Config {
                key: key("memory.limit"),
                value: got.to_string(),
                allowed: format!("at least {min} bytes"),
            },
            EndpointError::Collective(error) => Self::Collective(error),
            error => Self::Endpoint(error),
        }
    }
}

impl From<CollectiveError> for Failure {
    fn from(error: CollectiveError) -> Self {
        Self::Collective(error)
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        Self::Service(error)
    }
}

impl Failure {
    /// Returns the message, for callers without exceptions.
    pub fn message(&self) -> String {
        self.exception().1
    }

    /// Returns the Java class and the message, for classes with a constructor of one string.
    fn exception(&self) -> (&'static JNIStr, String) {
        let endpoint = jni_str!("io/faro/EndpointException");
        let closed = jni_str!("io/faro/EndpointException$Closed");
        match self {
            Self::Jni(error) => (endpoint, format!("JNI: {error}")),
            Self::Endpoint(error) => {
                let class = match error {
                    EndpointError::Card(_) => jni_str!("io/faro/EndpointException$BadCard"),
                    EndpointError::Full { .. } => jni_str!("io/faro/EndpointException$Full"),
                    EndpointError::Closed => closed,
                    EndpointError::Pool(PoolError::Exhausted { .. }) => {
                        jni_str!("io/faro/EndpointException$Exhausted")
                    }
                    EndpointError::BadRequest { .. } => {
                        jni_str!("java/lang/IllegalArgumentException")
                    }
                    _ => endpoint,
                };
                (class, error.to_string())
            }
            Self::Collective(error) => {
                let class = match error {
                    CollectiveError::Closed => closed,
                    CollectiveError::BadRank { .. }
                    | CollectiveError::NotOurs { .. }
                    | CollectiveError::BootstrapId { .. }
                    | CollectiveError::Plan(_) => jni_str!("java/lang/IllegalArgumentException"),
                    _ => endpoint,
                };
                (class, error.to_string())
            }
            Self::Service(error) => {
                let class = match error.is_lost() {
                    true => jni_str!("io/faro/service/ServiceException$Lost"),
                    false => jni_str!("io/faro/service/ServiceException"),
                };
                (class, error.to_string())
            }
            Self::State(text) => (jni_str!("java/lang/IllegalStateException"), text.clone()),
            Self::NoEndpoint(handle) => (
                closed,
                format!("endpoint handle {handle:#x} is not valid (any more)"),
            ),
            Self::NotHeld { what, handle } => (
                jni_str!("java/lang/IllegalStateException"),
                format!("{what} {handle:#x} is not held (released twice?)"),
            ),
            Self::Config {
                key,
                value,
                allowed,
            } => (
                jni_str!("io/faro/BadConfigurationException"),
                format!("{key} is '{value}', allowed: {allowed}"),
            ),
            Self::Argument(text) => (jni_str!("java/lang/IllegalArgumentException"), text.clone()),
        }
    }
}

/// The error policy of every entry point.
pub struct TypedErrors;

impl<T: Default> ErrorPolicy<T, Failure> for TypedErrors {
    type Captures<'unowned_env_local: 'native_method, 'native_method> = ();

    fn on_error<'unowned_env_local: 'native_method, 'native_method>(
        env: &mut Env<'unowned_env_local>,
        _captures: &mut (),
        failure: Failure,
    ) -> jni::errors::Result<T> {
        if env.exception_check() {
            return Ok(T::default());
        }
        if let Failure::Config {
            key,
            value,
            allowed,
        } = &failure
        {
            throw_bad_configuration(env, key, value, allowed)?;
        } else if let Failure::Collective(CollectiveError::Failed { .. }) = &failure {
            throw_collective(env, &failure)?;
        } else {
            let (class, message) = failure.exception();
            throw_message(env, class, &message)?;
        }
        Ok(T::default())
    }

    fn on_panic<'unowned_env_local: 'native_method, 'native_method>(
        env: &mut Env<'unowned_env_local>,
        _captures: &mut (),
        payload: Box<dyn Any + Send + 'static>,
    ) -> jni::errors::Result<T> {
        let message = panic_message(payload);
        if env.exception_check() {
            log::error!("{message}");
            return Ok(T::default());
        }
        throw_message(
            env,
            jni_str!("io/faro/EndpointException$NativeFault"),
            &message,
        )?;
        Ok(T::default())
    }
}

thread_local! {
    /// The place of this thread's last panic, which the payload does not have.
    static PANIC_PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Panics of all threads go to the log queue with their place, and not to stderr.
pub fn install_panic_hook() {
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(ToString::to_string);
        let thread = std::thread::current();
        log::error!(
            "thread {} panicked at {}: {}",
            thread.name().unwrap_or("of Java"),
            place.as_deref().unwrap_or("an unknown place"),
            text_of(info.payload())
        );
        // Fails when the thread is ending.
        let _ = PANIC_PLACE.try_with(|cell| *cell.borrow_mut() = place);
    }));
}

fn place() -> String {
    PANIC_PLACE
        .with(RefCell::take)
        .map_or_else(String::new, |place| format!(" at {place}"))
}

/// Returns the message of a panic that was caught on this thread.
pub fn panic_message(payload: Box<dyn Any + Send + 'static>) -> String {
    let message = format!("native code panicked{}: {}", place(), text_of(&*payload));
    // A payload whose drop panics would unwind out of here: leak it instead.
    std::mem::forget(payload);
    message
}

/// Returns the text of a panic, literal or formatted.
fn text_of(payload: &(dyn Any + Send)) -> &str {
    payload
        .downcast_ref::<&'static str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a payload that is not text")
}

fn throw_message(env: &mut Env<'_>, class: &JNIStr, message: &str) -> jni::errors::Result<()> {
    // `find_class` asks the loader of the calling class, which is Faro's own; the shorter ways of
    // `throw_new` would ask the thread's context loader first, which may hold another Faro.
    let class = env.find_class(class)?;
    let message = JString::new(env, message)?;
    let exception = env.new_object(
        &class,
        jni_sig!("(Ljava/lang/String;)V"),
        &[JValue::from(&message)],
    )?;
    raise(env, exception)
}

fn throw_bad_configuration(
    env: &mut Env<'_>,
    key: &str,
    value: &str,
    allowed: &str,
) -> jni::errors::Result<()> {
    let class = env.find_class(jni_str!("io/faro/BadConfigurationException"))?;
    let (key, value, allowed) = (
        JString::new(env, key)?,
        JString::new(env, value)?,
        JString::new(env, allowed)?,
    );
    let exception = env.new_object(
        &class,
        jni_sig!("(Ljava/lang/String;Ljava/lang/String;Ljava/lang/String;)V"),
        &[
            JValue::from(&key),
            JValue::from(&value),
            JValue::from(&allowed),
        ],
    )?;
    raise(env, exception)
}

fn throw_collective(env: &mut Env<'_>, failure: &Failure) -> jni::errors::Result<()> {
    let Failure::Collective(error) = failure else {
        return Ok(());
    };
    let CollectiveError::Failed {
        cause, rank, round, ..
    } = error
    else {
        return Ok(());
    };
    let class = env.find_class(jni_str!("io/faro/collective/CollectiveException"))?;
    let message = JString::new(env, error.to_string())?;
    let exception = env.new_object(
        &class,
        jni_sig!("(Ljava/lang/String;IIJ)V"),
        &[
            JValue::from(&message),
            JValue::from(*cause as i32),
            JValue::from(*rank as i32),
            JValue::from(*round as i64),
        ],
    )?;
    raise(env, exception)
}

fn raise<'local>(
    env: &mut Env<'local>,
    exception: jni::objects::JObject<'local>,
) -> jni::errors::Result<()> {
    let exception = env.cast_local::<JThrowable>(exception)?;
    match env.throw(exception) {
        Ok(()) | Err(jni::errors::Error::JavaException) => Ok(()),
        Err(other) => Err(other),
    }
}
