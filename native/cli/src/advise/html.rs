//! The advice as one page of HTML, which loads nothing. maud escapes every text.

use super::answer::saved;
use super::model::Reason;
use super::problem::Problems;
use super::ranking;
use super::report::{Advice, StageAdvice};
use super::text::shape;
use super::units::{bytes, count, counted, mean, percent, time};
use maud::{html, Markup, PreEscaped, DOCTYPE};

/// The colours are those of Faro's tab and plots. On a narrow screen a stage's figures stand below its bar.
const STYLE: &str = "
:root{--ink:#222;--soft:#666;--line:#ddd;--ground:#fff;--faint:#f5f5f5;--rest:#c9ced3;--save:#009e73;--may:#9ad6c3;--wait:#e69f00}
@media(prefers-color-scheme:dark){:root{--ink:#e8e8e8;--soft:#a5a5a5;--line:#3a3a3a;--ground:#181a1b;--faint:#232627;--rest:#50565b;--save:#2fc39a;--may:#1d6e58;--wait:#e6a92f}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:60rem;padding:1rem;background:var(--ground);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
h1{font-size:1.4rem;margin:.5rem 0}h2{font-size:1.05rem;margin:2rem 0 .5rem}
section{border-top:1px solid var(--line);margin-top:2rem;padding-top:1rem}
p{margin:.3rem 0}.soft{color:var(--soft);font-size:.9rem}.problem{border-left:4px solid #d55e00;padding-left:.6rem}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(9rem,1fr));gap:.6rem;margin:1rem 0}
.facts div{background:var(--faint);border-radius:.4rem;padding:.5rem .7rem}
.facts b{display:block;font-size:1.15rem;font-variant-numeric:tabular-nums}
.stage{margin:.9rem 0}.head{display:flex;justify-content:space-between;gap:1rem;font-size:.9rem}
.head span:first-child{overflow-wrap:anywhere}.head span:last-child{white-space:nowrap}
.bar{display:flex;height:1.3rem;margin:.2rem 0;border-radius:.2rem;overflow:hidden;min-width:2px}
.bar i{display:block;height:100%}.rest{background:var(--rest)}.save{background:var(--save)}.may{background:var(--may)}
.key i{display:inline-block;width:.8rem;height:.8rem;margin:0 .3rem 0 .8rem;vertical-align:-1px}
table{border-collapse:collapse;font-size:.9rem}th,td{padding:.2rem .6rem .2rem 0;text-align:left;border-bottom:1px solid var(--line)}
.wide{overflow-x:auto}a{color:inherit}
pre{background:var(--faint);padding:.7rem;border-radius:.4rem;overflow-x:auto}
";

pub fn page(all: &[Advice], unread: &Problems) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width,initial-scale=1";
                title { "Would Faro help?" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { "Would Faro help?" }
                @for problem in &unread.first { p.problem { (problem) } }
                @if all.len() > 1 { (ranked(all)) }
                @for (number, advice) in all.iter().enumerate() { (application(advice, number)) }
                p.soft { "An estimate from " (super::constants::MEASURED) "; docs/user/advise.md explains it." }
            }
        }
    };
    page.into_string() + "\n"
}

/// The table of all applications; a row leads to its section.
fn ranked(all: &[Advice]) -> Markup {
    html! {
        p { (ranking::summary(all)) }
        p.soft { (ranking::LEGEND) }
        div.wide {
            table {
                tr { @for title in ranking::TITLES { th { (title) } } }
                @for (number, advice) in all.iter().enumerate() {
                    tr {
                        @for (i, cell) in ranking::cells(advice).iter().enumerate() {
                            td { @if i == 0 { a href={ "#a" (number) } { (cell) } } @else { (cell) } }
                        }
                    }
                }
            }
        }
    }
}

fn application(a: &Advice, number: usize) -> Markup {
    let t = &a.totals;
    let facts = [
        ("remote bytes", bytes(t.remote_bytes)),
        ("remote blocks", count(t.remote_blocks)),
        ("mean remote block", mean(t.remote_bytes, t.remote_blocks)),
        ("local blocks", count(t.local_blocks)),
        ("mean local block", mean(t.local_bytes, t.local_blocks)),
        ("rows read", count(t.rows_read)),
        ("bytes written", bytes(t.bytes_written)),
        ("fetch wait", time(t.wait_ms as f64)),
        ("writing", time(t.write_ms)),
        ("time of all tasks", time(t.run_ms as f64)),
        ("spilled to disk", bytes(t.disk_spilled)),
    ];
    let longest = a.stages.iter().map(|s| s.wall_ms).max();
    html! {
        section id={ "a" (number) } {
            h1 { (a.message) }
            p.soft { (a.application) " " (a.id) ", Spark " (a.spark) "; " (shape(a)) }
            div.facts { @for (name, value) in facts { div { (name) b { (value) } } } }
            @for note in &a.notes { p.soft { (note) } }
            @for problem in &a.problems { p.problem { (problem) } }
            @if !a.stages.is_empty() {
                h2 { "Stages that shuffle, by their time" }
                p.soft.key {
                    i.save {} "Faro would save at least" i.may {} "at most" i.rest {} "the rest of the stage"
                }
                @for one in &a.stages { (stage(one, longest.unwrap_or(1).max(1))) }
            }
            @if a.more_stages > 0 {
                p.soft { (counted(a.more_stages as u64, "more stage")) " with a shuffle: --stages N" }
            }
            @if !a.settings.is_empty() {
                h2 { "To try it" }
                pre { "spark-submit \\\n  " (a.settings.join(" \\\n  ")) }
            }
        }
    }
}

fn stage(stage: &StageAdvice, longest: i64) -> Markup {
    let f = &stage.figures;
    let wide = |part: f64| format!("width:{:.1}%", 100.0 * part);
    let because = match stage.reason {
        Reason::Nothing => String::new(),
        reason => format!(" because of {}", reason.text()),
    };
    html! {
        div.stage {
            div.head {
                span { (stage.id) " " (f.name) }
                span { (time(stage.wall_ms as f64)) ", " (percent(stage.job_share)) " of the jobs" }
            }
            div.bar style=(wide(stage.wall_ms as f64 / longest as f64)) {
                i.save style=(wide(stage.gain.low)) {}
                i.may style=(wide(stage.gain.high - stage.gain.low)) {}
                i.rest style="flex:1" {}
            }
            p.soft {
                "saves " (saved(stage.gain)) (because) ". Read " (bytes(f.remote_bytes)) " remote, "
                (bytes(f.local_bytes)) " local in " (counted(f.blocks_read(), "block")) " of "
                (mean(f.bytes_read(), f.blocks_read())) "; "
                (counted(f.rows_read.saturating_add(f.rows_written), "row")) "; fetch wait "
                (percent(f.wait_ms as f64 / f.run_ms.max(1) as f64)) "; wrote " (bytes(f.bytes_written)) " in "
                (time(f.write_ms)) "; spilled " (bytes(f.disk_spilled))
            }
        }
    }
}
