//! Logs that tests make, and the command under limits.

use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder of a test, which ends with it.
pub struct Place(pub PathBuf);

impl Place {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("faro-advise-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn file(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub fn run<S: AsRef<OsStr>>(args: &[S]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_faro"));
    command.arg("advise").args(args);
    command.output().unwrap()
}

pub fn advise(args: &[&Path]) -> Output {
    let mut all = vec![OsStr::new("--json")];
    all.extend(args.iter().map(|path| path.as_os_str()));
    run(&all)
}

/// Runs with the limits of the shell: KiB of address space (`-v`), seconds of CPU (`-t`). A command that
/// waits for something is ended after a minute.
pub fn limited<S: AsRef<OsStr>>(limit: &str, args: &[S]) -> Output {
    let script = format!("ulimit {limit}; exec timeout 60 \"$0\" advise \"$@\"");
    let mut command = Command::new("bash");
    command
        .args(["-c", &script, env!("CARGO_BIN_EXE_faro")])
        .args(args);
    command.output().unwrap()
}

pub fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// An application with one stage of Spark SQL, which reads blocks in a minute of task time.
#[derive(Clone)]
pub struct SampleApplication<'a> {
    pub id: &'a str,
    pub name: &'a str,
    pub stage: &'a str,
    pub properties: &'a str,
    pub blocks: u64,
}

impl Default for SampleApplication<'_> {
    fn default() -> Self {
        Self {
            id: "app-1",
            name: "<made>",
            stage: "<b>",
            properties: "{}",
            blocks: 800_000,
        }
    }
}

impl SampleApplication<'_> {
    pub fn log(&self) -> String {
        let text = |text: &str| serde_json::to_string(text).unwrap();
        format!(
            r#"{{"Event":"SparkListenerLogStart","Spark Version":"4.3.0"}}
{{"Event":"SparkListenerEnvironmentUpdate","Spark Properties":{}}}
{{"Event":"SparkListenerApplicationStart","App Name":{},"App ID":{}}}
{{"Event":"SparkListenerExecutorAdded","Executor Info":{{"Host":"h","Total Cores":1}}}}
{{"Event":"SparkListenerJobStart","Job ID":0,"Submission Time":1000,"Stage IDs":[1]}}
{{"Event":"SparkListenerTaskEnd","Stage ID":1,"Task Info":{{"Launch Time":1000,"Finish Time":61000}},"Task Metrics":{{"Executor Run Time":60000,"Shuffle Read Metrics":{{"Remote Blocks Fetched":{blocks},"Remote Bytes Read":{},"Total Records Read":{blocks}}}}}}}
{{"Event":"SparkListenerStageCompleted","Stage Info":{{"Stage ID":1,"Stage Name":{},"RDD Info":[{{"Name":"ShuffledRowRDD"}}],"Submission Time":1000,"Completion Time":61000}}}}
{{"Event":"SparkListenerJobEnd","Job ID":0,"Completion Time":61000}}
{END}"#,
            self.properties,
            text(self.name),
            text(self.id),
            self.blocks * 200,
            text(self.stage),
            blocks = self.blocks,
        )
    }
}

pub const END: &str = "{\"Event\":\"SparkListenerApplicationEnd\"}\n";
