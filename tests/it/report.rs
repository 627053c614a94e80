//! Does the report open in a browser, and can everything on it be done? Chromium is started by the
//! test; where there is none, the test says so and looks at the file alone.

use std::path::PathBuf;
use std::process::Command;

use crate::cli::simulate;

/// A folder of its own for as long as a test runs.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("collsim-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("writable");
        Folder(folder)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("UTF-8").to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The report of a machine by small calls, and where it lies.
fn report(folder: &Folder, machine: &str) -> (String, String) {
    let file = folder.file("r.html");
    let sizes = ["-b", "1K", "-e", "16K", "-f", "4", "--algo", "ring,one_shot_push"];
    let mut arguments = vec!["report", "--topo", machine, "--out", &file];
    arguments.extend(sizes);
    let run = simulate(&arguments);
    assert_eq!(run.code, 0, "{}", run.err);
    (std::fs::read_to_string(&file).expect("written"), file)
}

#[test]
fn a_report_is_one_file_that_holds_everything() {
    let folder = Folder::new("report-file");
    for machine in ["rtxpro6000x8-flat", "h100x8-nvswitch"] {
        let (page, _) = report(&folder, machine);
        assert!(page.len() < 2_000_000, "{} bytes", page.len());
        for outside in ["src=", "<link", "url(", "@import", "href=\"http", "fetch(", "XMLHttp"] {
            assert!(!page.contains(outside), "{machine}: {outside}");
        }
        for part in ["Summary", "Three numbers", "Assumptions", "The same again", "simulate report"]
        {
            assert!(page.contains(part), "{machine}: {part}");
        }
        // Without the script all pictures and tables are there.
        assert!(page.matches("<svg").count() >= 11 && page.matches("<table").count() >= 4);
        if machine == "h100x8-nvswitch" {
            let (again, _) = report(&folder, machine);
            assert!(page == again, "{machine}: not the same twice");
        }
    }
}

#[test]
fn a_report_for_an_issue_is_words_and_tables() {
    let arguments = ["report", "--topo", "rtxpro6000x8-flat", "-b", "1K", "--algo", "ring"];
    let run = simulate(&arguments);
    assert_eq!(run.code, 0, "{}", run.err);
    for part in
        ["# collsim: rtxpro6000x8-flat", "## Assumptions", "| wires allow |", "simulate plot"]
    {
        assert!(run.out.contains(part), "no `{part}` in\n{}", run.out);
    }
    assert!(!run.out.contains('\u{1b}') && !run.out.contains("<svg"));
    let lone = simulate(&["report", "--topo", "h200-host-link"]);
    assert!(lone.code == 0 && lone.out.contains("nothing to reduce"), "{}", lone.err);
}

/// Chromium, by the names that it has on Linux.
fn chromium() -> Option<&'static str> {
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    let found = names.into_iter().find(|name| {
        Command::new(name).arg("--version").output().is_ok_and(|run| run.status.success())
    });
    if found.is_none() {
        #[expect(clippy::disallowed_macros, reason = "says what was not tested")]
        {
            eprintln!("no Chromium here: the report was not opened (apt-get install chromium)");
        }
    }
    found
}

/// Opens a page and gives back its document at the end, and what the console said.
fn opened(chromium: &str, folder: &Folder, page: &str, flags: &[&str]) -> (String, String) {
    let profile = format!("--user-data-dir={}", folder.file("profile"));
    let output = Command::new(chromium)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", &profile])
        .args(["--disable-dev-shm-usage", "--enable-logging=stderr", "--virtual-time-budget=4000"])
        .args(["--host-resolver-rules=MAP * ~NOTFOUND", "--disable-background-networking"])
        .args(flags)
        .arg(format!("file://{page}"))
        .output()
        .expect("Chromium starts");
    let said = String::from_utf8_lossy(&output.stderr);
    let console = said.lines().filter(|line| line.contains("CONSOLE")).collect::<Vec<_>>();
    (String::from_utf8_lossy(&output.stdout).into_owned(), console.join("\n"))
}

/// Uses every control as a reader would, and notes in the document what came of it.
const READER: &str = r##"
<script>
addEventListener('load', () => {
  const told = {};
  const id = (name) => document.getElementById(name);
  const controls = [...document.querySelectorAll('a[href],button,select,input,[tabindex="0"]')];
  told.focus = controls.filter((c) => c.offsetParent !== null || c.closest('nav')).every((c) => {
    c.focus();
    return document.activeElement === c;
  });
  told.controls = controls.length;
  const button = document.querySelector('#plot-time button.series');
  const group = [...document.querySelectorAll('#plot-time g[data-series]')].find((g) => g.dataset.series === button.textContent);
  button.click();
  told.off = getComputedStyle(group).display;
  button.click();
  told.on = getComputedStyle(group).display;
  id('size').value = '1';
  id('size').dispatchEvent(new Event('change'));
  told.sizes = [...document.querySelectorAll('.size')].map((s) => getComputedStyle(s).display).join();
  const line = document.querySelector('#plot-machine g[data-link] polyline');
  const strokes = new Set();
  for (let at = 0; at <= Number(id('time').max); at += 1) {
    id('time').value = at;
    id('time').dispatchEvent(new Event('input'));
    strokes.add(line.style.stroke);
  }
  told.strokes = strokes.size;
  told.now = id('now').textContent;
  id('play').click();
  told.play = id('play').textContent;
  id('play').click();
  const mark = document.querySelector('#plot-time g > title').parentNode;
  mark.firstElementChild.nextElementSibling.dispatchEvent(new PointerEvent('pointerover', {bubbles: true}));
  told.tip = id('tip').textContent;
  told.resources = performance.getEntriesByType('resource').length;
  told.wide = document.documentElement.scrollWidth - innerWidth;
  told.inner = innerWidth;
  told.paper = getComputedStyle(document.documentElement).backgroundColor;
  told.svg = getComputedStyle(document.querySelector('svg rect')).fill;
  document.documentElement.dataset.told = JSON.stringify(told);
});
</script>
"##;

/// What the reader noted.
fn told(document: &str) -> serde_json::Value {
    let (_, rest) = document.split_once("data-told=\"").expect("the reader came to the end");
    let (text, _) = rest.split_once('"').expect("ends");
    serde_json::from_str(&text.replace("&quot;", "\"").replace("&amp;", "&")).expect("JSON")
}

#[test]
fn a_report_can_be_used_in_a_browser() {
    let Some(chromium) = chromium() else { return };
    let folder = Folder::new("report-browser");
    let (page, file) = report(&folder, "rtxpro6000x8-flat");
    let used = folder.file("used.html");
    std::fs::write(&used, page.replace("</body>", &format!("{READER}</body>"))).expect("written");
    for (flags, dark) in [
        (["--window-size=400,900", "--blink-settings=preferredColorScheme=1"], false),
        (["--window-size=1200,900", "--blink-settings=preferredColorScheme=0"], true),
    ] {
        let all = [flags[0], flags[1], "--dump-dom"];
        let (document, console) = opened(chromium, &folder, &used, &all);
        assert_eq!(console, "", "the console is silent");
        let told = told(&document);
        assert_eq!(told["focus"], true, "{told}");
        assert!(told["controls"].as_u64() > Some(20), "{told}");
        assert!(told["off"] == "none" && told["on"] != "none", "{told}");
        assert_eq!(told["sizes"], "none,block,none", "{told}");
        assert!(told["strokes"].as_u64() > Some(2), "{told}");
        assert!(told["now"].as_str().is_some_and(|now| now.contains(" us: ")), "{told}");
        assert_eq!(told["play"], "Pause", "{told}");
        assert!(told["tip"].as_str().is_some_and(|tip| tip.contains(" us")), "{told}");
        assert_eq!(told["resources"], 0, "{told}");
        assert!(told["wide"].as_i64() <= Some(0), "{told}");
        let paper = if dark { "rgb(13, 17, 23)" } else { "rgb(255, 255, 255)" };
        assert!(told["paper"] == paper && told["svg"] == paper, "{told}");
    }
    let pdf = folder.file("r.pdf");
    let print = format!("--print-to-pdf={pdf}");
    opened(chromium, &folder, &file, &[&print]);
    let printed = std::fs::read(&pdf).expect("a PDF");
    assert!(printed.starts_with(b"%PDF") && printed.len() > 30_000, "{} bytes", printed.len());
}
