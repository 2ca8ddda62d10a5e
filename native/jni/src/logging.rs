//! The `log` crate's logger, and what Java calls to read it.

use crate::log_queue::LogQueue;
use crate::throw::{install_panic_hook, EntryResult, TypedErrors};
use jni::objects::{JClass, JString};
use jni::sys::{jint, jlong};
use jni::EnvUnowned;
use log::{Level, LevelFilter, Log, Metadata, Record};
use std::sync::{Once, OnceLock};

static QUEUE: OnceLock<LogQueue> = OnceLock::new();
static INSTALL: Once = Once::new();

fn queue() -> &'static LogQueue {
    QUEUE.get_or_init(LogQueue::new)
}

struct QueueLogger;

impl Log for QueueLogger {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= log::max_level()
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            let level = match record.level() {
                Level::Error => 1,
                Level::Warn => 2,
                Level::Info => 3,
                Level::Debug => 4,
                Level::Trace => 5,
            };
            queue().push(level, record.target(), &record.args().to_string());
        }
    }

    fn flush(&self) {}
}

/// `Native.logLevel`; the first call installs the logger and the panic hook.
#[no_mangle]
pub extern "system" fn Java_io_faro_Native_logLevel<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    level: jint,
) {
    env.with_env(|_| -> EntryResult<()> {
        INSTALL.call_once(|| {
            // Fails only when a logger is set, which nothing else in this library does.
            let _ = log::set_logger(&QueueLogger);
            install_panic_hook();
        });
        log::set_max_level(match level {
            i32::MIN..=0 => LevelFilter::Off,
            1 => LevelFilter::Error,
            2 => LevelFilter::Warn,
            3 => LevelFilter::Info,
            4 => LevelFilter::Debug,
            5.. => LevelFilter::Trace,
        });
        Ok(())
    })
    .resolve::<TypedErrors>();
}

/// `Native.drainLog`.
#[no_mangle]
pub extern "system" fn Java_io_faro_Native_drainLog<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    timeout_millis: jlong,
) -> JString<'local> {
    env.with_env(|env| -> EntryResult<JString<'local>> {
        match queue().drain(crate::args::wait(timeout_millis)) {
            Some(text) => Ok(JString::new(env, text)?),
            None => Ok(JString::null()),
        }
    })
    .resolve::<TypedErrors>()
}
