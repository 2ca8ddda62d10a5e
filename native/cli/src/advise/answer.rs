//! The answer for one application, in a word and in a sentence.

use super::constants;
use super::figures::{LoggedApplication, StageFigures};
use super::model::{AdviceVerdict, Gain, Reason};
use super::reader::MissingPart;

pub type AdviceAnswer = (AdviceVerdict, Reason, String);

/// The answer by the estimate; `main` is the reason of the stages that save most.
pub fn estimated(main: Reason, totals: &StageFigures, gain: Gain) -> AdviceAnswer {
    let verdict = AdviceVerdict::of(gain);
    let may = match verdict {
        AdviceVerdict::Helps => "would help",
        AdviceVerdict::Perhaps => "may help",
        AdviceVerdict::CannotSay | AdviceVerdict::DoesNotHelp => {
            let (why, text) = why_not(totals, gain);
            return (verdict, why, format!("Faro would not help here: {text}"));
        }
    };
    let message = format!(
        "Faro {may}: it would save {} of the jobs' time",
        saved(gain)
    );
    (verdict, main, message)
}

/// The answer for a log that has only a part of its application.
pub fn cannot_say(part: MissingPart, totals: &StageFigures, gain: Gain) -> AdviceAnswer {
    let (why, text) = match part {
        MissingPart::StillRuns => (Reason::StillRuns, "the application still ran"),
        MissingPart::Compacted => (
            Reason::Compacted,
            "the log was compacted, so jobs that had ended are not in it",
        ),
        MissingPart::NoEnd => (
            Reason::NoEnd,
            "the log has no end, because the application was killed or the log is cut",
        ),
        MissingPart::Cut => (Reason::Cut, "a part of the log could not be read"),
    };
    let rest = match totals.shuffles() {
        true => format!(
            "in what was read Faro would save {} of the jobs' time",
            saved(gain)
        ),
        false => "what was read has no shuffle".to_owned(),
    };
    let message = format!("Cannot say: {text}; {rest}");
    (AdviceVerdict::CannotSay, why, message)
}

/// `9 % (5 to 12 %)`.
pub fn saved(gain: Gain) -> String {
    let [expected, low, high] = [gain.expected, gain.low, gain.high].map(|part| 100.0 * part);
    format!("{expected:.0} % ({low:.0} to {high:.0} %)")
}

fn why_not(totals: &StageFigures, gain: Gain) -> (Reason, String) {
    if !totals.shuffles() {
        let text = "the application has no shuffle".to_owned();
        (Reason::NoShuffle, text)
    } else if gain.high < constants::NOTICEABLE {
        let max = (100.0 * gain.high).ceil().max(1.0);
        let text = format!(
            "its shuffles cost too little; at most {max:.0} % of the jobs' time could be saved"
        );
        (Reason::LittleShuffle, text)
    } else {
        let text = format!(
            "no gain can be promised; {:.0} % of the jobs' time only if its tasks wait for something \
             that Faro changes",
            100.0 * gain.high
        );
        (Reason::FetchWait, text)
    }
}

/// The answer for an application without a valid estimate.
pub fn unfit(app: &LoggedApplication) -> Option<AdviceAnswer> {
    let manager = app.properties.get("spark.shuffle.manager");
    let faro = |value: &str| value.contains("io.faro.spark");
    if faro(manager) || faro(app.properties.get("spark.plugins")) {
        let text = "Cannot say: this run used Faro already, and the estimate needs the log of a run without it";
        return Some((AdviceVerdict::CannotSay, Reason::UsedFaro, text.to_owned()));
    }
    if !["", "sort", "tungsten-sort"].contains(&manager)
        && !manager.ends_with(".SortShuffleManager")
    {
        let text = format!(
            "Cannot say: the run used another shuffle, spark.shuffle.manager={manager}, and the \
             measurements are against Spark's own; docs/user/compatibility.md says how Faro works behind it"
        );
        return Some((AdviceVerdict::CannotSay, Reason::OtherShuffle, text));
    }
    let master = app.properties.get("spark.master");
    if master == "local" || master.starts_with("local[") {
        let text = "Faro would not help here: in local mode no block is remote";
        return Some((
            AdviceVerdict::DoesNotHelp,
            Reason::LocalMode,
            text.to_owned(),
        ));
    }
    None
}
