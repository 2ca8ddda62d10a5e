//! `--bundle`: one file for a report of a problem, with nothing secret in it.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Bounds of what is read of logs, and of lines that are kept of each.
const MAX_LOGS: usize = 64;
const MAX_DEPTH: usize = 5;
const MAX_ENTRIES: usize = 100_000;
const TAIL_BYTES: u64 = 1 << 20;
const MAX_LINES: usize = 200;
const MAX_LINE: usize = 2_000;
const LEFT_OUT: &str = "(left out)";

/// What the file is made of, beside the doctor's own result.
pub(super) struct BundleSources<'a> {
    /// Files with Spark's settings, as `spark-defaults.conf`.
    pub settings: Vec<PathBuf>,
    /// Log files of drivers and executors, and directories with such.
    pub logs: &'a [PathBuf],
}

/// Spark's settings by the variables of the environment.
pub(super) fn settings_of_environment() -> Option<PathBuf> {
    let directory = std::env::var_os("SPARK_CONF_DIR").map(PathBuf::from);
    let directory = directory
        .or_else(|| std::env::var_os("SPARK_HOME").map(|home| PathBuf::from(home).join("conf")));
    directory
        .map(|directory| directory.join("spark-defaults.conf"))
        .filter(|file| file.is_file())
}

/// Writes the file, which must not exist. `result` is the doctor's screen.
pub(super) fn write(path: &Path, result: &[u8], sources: &BundleSources<'_>) -> io::Result<()> {
    let named =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    let mut out = io::BufWriter::new(File::create_new(path).map_err(named)?);
    contents(&mut out, result, sources).map_err(named)?;
    out.flush().map_err(named)
}

fn contents(out: &mut impl Write, result: &[u8], sources: &BundleSources<'_>) -> io::Result<()> {
    writeln!(out, "# Versions\n")?;
    for (name, text) in versions() {
        writeln!(out, "{name}: {text}")?;
    }
    writeln!(out, "\n# faro doctor\n")?;
    for line in String::from_utf8_lossy(result).lines() {
        writeln!(out, "{}", without_secrets(line))?;
    }
    for file in &sources.settings {
        writeln!(out, "\n# Settings of {}\n", file.display())?;
        match fs::read_to_string(file) {
            Ok(text) => settings(out, &text)?,
            Err(error) => writeln!(out, "cannot be read: {error}")?,
        }
    }
    for file in log_files(sources.logs) {
        writeln!(out, "\n# Log {}\n", file.display())?;
        match last_lines(&file) {
            Ok(lines) => {
                for line in lines {
                    writeln!(out, "{}", without_secrets(&line))?;
                }
            }
            Err(error) => writeln!(out, "cannot be read: {error}")?,
        }
    }
    Ok(())
}

fn versions() -> Vec<(&'static str, String)> {
    let first = |path: &str, start: &str| {
        let text = fs::read_to_string(path).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with(start));
        line.unwrap_or("not known").trim().to_owned()
    };
    let spark = std::env::var("SPARK_HOME").map_or_else(
        |_| "SPARK_HOME is not set".to_owned(),
        |home| first(&format!("{home}/RELEASE"), "Spark"),
    );
    vec![
        ("faro", env!("CARGO_PKG_VERSION").to_owned()),
        ("system", first("/etc/os-release", "PRETTY_NAME=")),
        ("kernel", first("/proc/version", "")),
        ("processor", first("/proc/cpuinfo", "model name")),
        ("processors", processors()),
        ("memory", first("/proc/meminfo", "MemTotal:")),
        ("java", java()),
        ("Spark", spark),
    ]
}

fn processors() -> String {
    std::thread::available_parallelism().map_or_else(|error| error.to_string(), |n| n.to_string())
}

/// The first line of `java -version`, which goes to standard error.
fn java() -> String {
    let home = std::env::var_os("JAVA_HOME").map(|home| Path::new(&home).join("bin/java"));
    let output = Command::new(home.unwrap_or_else(|| "java".into()))
        .arg("-version")
        .output();
    match output {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stderr);
            text.lines().next().unwrap_or("not known").to_owned()
        }
        Err(error) => format!("not found: {error}"),
    }
}

/// Each line is a key and a value; between them are spaces, `=` or `:`.
fn settings(out: &mut impl Write, text: &str) -> io::Result<()> {
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (key, value) = line.split_at(line.find([' ', '\t', '=', ':']).unwrap_or(line.len()));
        let value = value.trim_start_matches([' ', '\t', '=', ':']);
        match is_secret(key) {
            true => writeln!(out, "{key} {LEFT_OUT}")?,
            false => writeln!(out, "{key} {}", without_secrets(value))?,
        }
    }
    Ok(())
}

/// More than Spark's `spark.redaction.regex`, which has `secret`, `password`, `token` and `access key`.
fn is_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    let words = [
        "secret",
        "password",
        "passwd",
        "token",
        "credential",
        "private",
        "access.key",
        "accesskey",
        "apikey",
    ];
    words.iter().any(|word| key.contains(word))
}

/// A line of which the values of secret keys, and passwords in addresses, are left out.
fn without_secrets(line: &str) -> String {
    let mut out = String::new();
    let short: String = line.chars().take(MAX_LINE).collect();
    for word in short.split_inclusive([' ', '\t', ',', '"', '\'', ';', '&', '?']) {
        let end = word
            .trim_end_matches([' ', '\t', ',', '"', '\'', ';', '&', '?'])
            .len();
        let (word, separator) = word.split_at(end);
        match (word.split_once('='), user_of_address(word)) {
            (Some((key, value)), _) if is_secret(key) && !value.is_empty() => {
                out.push_str(&format!("{key}={LEFT_OUT}"));
            }
            (_, Some((before, after))) => out.push_str(&format!("{before}{LEFT_OUT}{after}")),
            _ => out.push_str(word),
        }
        out.push_str(separator);
    }
    out
}

/// What stands before and after the `user:password` of an address; `None`: it has none.
fn user_of_address(word: &str) -> Option<(&str, &str)> {
    let start = word.find("://")? + 3;
    let authority = word[start..].split('/').next()?;
    let at = authority.rfind('@')?;
    authority[..at]
        .contains(':')
        .then(|| (&word[..start], &word[start + at..]))
}

/// Files are logs in any case; in directories, those named `stderr`, `stdout` or `*.log`.
fn log_files(sources: &[PathBuf]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut seen = 0;
    let mut left: VecDeque<(PathBuf, usize)> =
        sources.iter().map(|path| (path.clone(), 0)).collect();
    while let Some((path, depth)) = left.pop_front() {
        if found.len() == MAX_LOGS || seen == MAX_ENTRIES {
            break;
        }
        seen += 1;
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        let is_log = depth == 0 || name == "stderr" || name == "stdout" || name.ends_with(".log");
        if path.is_file() && is_log {
            found.push(path);
        } else if depth < MAX_DEPTH && path.is_dir() && !(depth > 0 && path.is_symlink()) {
            let entries = fs::read_dir(&path).into_iter().flatten().flatten();
            let mut entries: Vec<PathBuf> = entries
                .take(MAX_ENTRIES)
                .map(|entry| entry.path())
                .collect();
            entries.sort();
            left.extend(entries.into_iter().map(|entry| (entry, depth + 1)));
        }
    }
    found
}

/// The last lines of a log that are Faro's, or warnings; the counters are in its summary.
fn last_lines(path: &Path) -> io::Result<VecDeque<String>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut lines = VecDeque::new();
    let mut reader = BufReader::new(file.take(TAIL_BYTES));
    let mut bytes = Vec::new();
    while reader.read_until(b'\n', &mut bytes)? > 0 {
        let line = String::from_utf8_lossy(&bytes).trim_end().to_owned();
        bytes.clear();
        if ["aro", " WARN ", " ERROR ", "Exception"]
            .iter()
            .any(|word| line.contains(word))
        {
            if lines.len() == MAX_LINES {
                lines.pop_front();
            }
            lines.push_back(line);
        }
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;

    #[test]
    fn no_secret_is_in_settings() {
        let mut out = Vec::new();
        let text = "# c\nspark.authenticate.secret s3cr3t\nspark.a=1\nspark.hadoop.fs.s3a.access.key: s3cr3t\n\
                    spark.executor.extraJavaOptions -Dx.password=s3cr3t -Dy=2\nspark.url jdbc://me:s3cr3t@h/d\n";
        settings(&mut out, text).unwrap();
        let out = String::from_utf8(out).unwrap();
        assert!(!out.contains("s3cr3t"), "{out}");
        for kept in [
            "spark.a 1\n",
            "-Dy=2",
            "jdbc://(left out)@h/d",
            "spark.authenticate.secret (left out)",
        ] {
            assert!(out.contains(kept), "{kept} in {out}");
        }
    }

    #[test]
    fn no_secret_is_in_log_lines() {
        let line = "INFO x: \"-Dspark.authenticate.secret=s3cr3t\" http://h/p?token=s3cr3t&a=1 http://u:s3cr3t@h";
        let out = without_secrets(line);
        assert!(!out.contains("s3cr3t"), "{out}");
        assert!(
            out.contains("&a=1") && out.starts_with("INFO x: \""),
            "{out}"
        );
        let plain = "WARN FaroProcess: Faro could not start: a=b, c";
        assert_eq!(without_secrets(plain), plain);
    }
}
