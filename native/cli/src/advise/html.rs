//! The advice as one page of HTML, which loads nothing.

use super::answer::saved;
use super::model::Reason;
use super::problem::Problems;
use super::ranking;
use super::report::{Advice, StageAdvice};
use super::text::shape;
use super::units::{bytes, count, counted, mean, percent, time};
use std::fmt::Write;

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
    let mut html = String::with_capacity(16_384);
    html.push_str("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">");
    html.push_str("<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">");
    html.push_str("<title>Would Faro help?</title><style>");
    html.push_str(STYLE);
    html.push_str("</style></head><body><h1>Would Faro help?</h1>\n");
    for problem in &unread.first {
        let text = escaped(&problem.to_string());
        let _ = writeln!(html, "<p class=\"problem\">{text}</p>");
    }
    if all.len() > 1 {
        ranked(&mut html, all);
    }
    for (number, advice) in all.iter().enumerate() {
        application(&mut html, advice, number);
    }
    html.push_str("<p class=\"soft\">An estimate from ");
    html.push_str(&escaped(super::constants::MEASURED));
    html.push_str("; docs/user/advise.md explains it.</p></body></html>\n");
    html
}

/// The table of all applications; a row leads to its section.
fn ranked(html: &mut String, all: &[Advice]) {
    let _ = writeln!(
        html,
        "<p>{}</p><p class=\"soft\">{}</p><div class=\"wide\"><table><tr>",
        ranking::summary(all),
        ranking::LEGEND
    );
    for title in ranking::TITLES {
        let _ = write!(html, "<th>{title}</th>");
    }
    for (number, advice) in all.iter().enumerate() {
        html.push_str("</tr>\n<tr>");
        for (i, cell) in ranking::cells(advice).iter().enumerate() {
            let text = escaped(cell);
            let _ = match i {
                0 => write!(html, "<td><a href=\"#a{number}\">{text}</a></td>"),
                _ => write!(html, "<td>{text}</td>"),
            };
        }
    }
    html.push_str("</tr></table></div>\n");
}

fn application(html: &mut String, a: &Advice, number: usize) {
    let _ = writeln!(
        html,
        "<section id=\"a{number}\"><h1>{}</h1><p class=\"soft\">{} {}, Spark {}; {}</p>",
        escaped(&a.message),
        escaped(&a.application),
        escaped(&a.id),
        escaped(&a.spark),
        shape(a)
    );
    let t = &a.totals;
    html.push_str("<div class=\"facts\">");
    for (name, value) in [
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
    ] {
        let _ = write!(html, "<div>{name}<b>{value}</b></div>");
    }
    html.push_str("</div>\n");
    for note in &a.notes {
        let _ = writeln!(html, "<p class=\"soft\">{}</p>", escaped(note));
    }
    for problem in &a.problems {
        let text = escaped(&problem.to_string());
        let _ = writeln!(html, "<p class=\"problem\">{text}</p>");
    }
    if !a.stages.is_empty() {
        html.push_str(
            "<h2>Stages that shuffle, by their time</h2><p class=\"soft key\">\
             <i class=\"save\"></i>Faro would save at least<i class=\"may\"></i>at most\
             <i class=\"rest\"></i>the rest of the stage</p>\n",
        );
        let longest = a.stages.iter().map(|s| s.wall_ms).max();
        for one in &a.stages {
            stage(html, one, longest.unwrap_or(1).max(1));
        }
    }
    if a.more_stages > 0 {
        let more = counted(a.more_stages as u64, "more stage");
        let _ = writeln!(
            html,
            "<p class=\"soft\">{more} with a shuffle: --stages N</p>"
        );
    }
    if !a.settings.is_empty() {
        let text = a.settings.join(" \\\n  ");
        let _ = writeln!(
            html,
            "<h2>To try it</h2><pre>spark-submit \\\n  {}</pre>",
            escaped(&text)
        );
    }
    html.push_str("</section>\n");
}

fn stage(html: &mut String, stage: &StageAdvice, longest: i64) {
    let f = &stage.figures;
    let width = 100.0 * stage.wall_ms as f64 / longest as f64;
    let (low, high) = (100.0 * stage.gain.low, 100.0 * stage.gain.high);
    let _ = write!(
        html,
        "<div class=\"stage\"><div class=\"head\"><span>{} {}</span><span>{}, {} of the jobs</span></div>\
         <div class=\"bar\" style=\"width:{width:.1}%\"><i class=\"save\" style=\"width:{low:.1}%\"></i>\
         <i class=\"may\" style=\"width:{:.1}%\"></i><i class=\"rest\" style=\"flex:1\"></i></div>",
        stage.id,
        escaped(&f.name),
        time(stage.wall_ms as f64),
        percent(stage.job_share),
        high - low,
    );
    let because = match stage.reason {
        Reason::Nothing => String::new(),
        reason => format!(" because of {}", reason.text()),
    };
    let _ = writeln!(
        html,
        "<p class=\"soft\">saves {}{because}. Read {} remote, {} local in {} of {}; {}; \
         fetch wait {}; wrote {} in {}; spilled {}</p></div>",
        saved(stage.gain),
        bytes(f.remote_bytes),
        bytes(f.local_bytes),
        counted(f.blocks_read(), "block"),
        mean(f.bytes_read(), f.blocks_read()),
        counted(f.rows_read.saturating_add(f.rows_written), "row"),
        percent(f.wait_ms as f64 / f.run_ms.max(1) as f64),
        bytes(f.bytes_written),
        time(f.write_ms),
        bytes(f.disk_spilled),
    );
}

fn escaped(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            c => html.push(c),
        }
    }
    html
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_of_a_log_are_text() {
        assert_eq!(
            super::escaped("<b a='\"'>&"),
            "&lt;b a=&#39;&quot;&#39;&gt;&amp;"
        );
    }
}
