//! JNI bindings (see jvm/).
