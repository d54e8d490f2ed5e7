"""The look of the HTML page: one style sheet, light and dark, nothing fetched."""

CSS = """
:root {
  color-scheme: light dark;
  --page: #ffffff; --card: #f5f7f8; --ink: #1b2126; --quiet: #59636d; --line: #dbe1e5;
  --accent: #0b7a67; --warn-ink: #8a3b00; --warn: #fff3e4; --warn-line: #f0b878;
  --good-ink: #0b5f50; --good: #e5f6f1; --good-line: #7ccab8;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14181d; --card: #1c2229; --ink: #e6eaee; --quiet: #a0abb5; --line: #333c45;
    --accent: #3fc4aa; --warn-ink: #ffc98a; --warn: #33240f; --warn-line: #80551f;
    --good-ink: #86e0cb; --good: #10302a; --good-line: #2b7666;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
}
main { max-width: 58rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
h1 { font-size: 2rem; line-height: 1.2; margin: 0 0 .4rem; letter-spacing: -.01em; }
h2 { font-size: 1.25rem; margin: 3rem 0 .75rem; }
p { margin: .5rem 0; max-width: 44rem; }
.brand { color: var(--accent); font-weight: 650; margin: 0 0 1.25rem; }
.quiet, figcaption, caption { color: var(--quiet); font-size: .9rem; }
.badge {
  display: inline-block; padding: .05rem .6rem; border: 1px solid var(--warn-line);
  border-radius: 1rem; background: var(--warn); color: var(--warn-ink);
  font-size: .8rem; font-weight: 600; vertical-align: .2em;
}
.notice {
  margin: 1.25rem 0; padding: .75rem 1rem; border-radius: .5rem;
  border: 1px solid var(--warn-line); background: var(--warn); color: var(--warn-ink);
}
.notice.good {
  border-color: var(--good-line); background: var(--good); color: var(--good-ink);
}
.notice p { margin: 0; }
dl.facts {
  display: grid; grid-template-columns: repeat(auto-fill, minmax(11rem, 1fr));
  gap: .75rem; margin: 1.5rem 0;
}
dl.facts div { background: var(--card); border-radius: .5rem; padding: .6rem .9rem; }
dt { color: var(--quiet); font-size: .8rem; }
dd { margin: 0; font-weight: 600; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
caption { text-align: left; padding-bottom: .4rem; }
th, td {
  text-align: left; vertical-align: top; padding: .45rem .9rem .45rem 0;
  border-bottom: 1px solid var(--line);
}
thead th { color: var(--quiet); font-weight: 600; white-space: nowrap; }
tbody th { font-weight: 600; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
tr.ours > * { color: var(--accent); font-weight: 650; }
figure { margin: 1rem 0 1.5rem; }
figcaption { margin-top: .5rem; }
figure svg { display: block; width: 100%; height: auto; }
details summary { cursor: pointer; color: var(--quiet); font-size: .9rem; }
.two {
  display: grid; grid-template-columns: repeat(auto-fit, minmax(17rem, 1fr)); gap: 2rem;
}
.two h3 { font-size: 1rem; margin: .5rem 0; }
ul.history { margin: 0; padding-left: 1.1rem; }
pre {
  background: var(--card); border-radius: .5rem; padding: .8rem 1rem; overflow-x: auto;
  font: .88rem/1.5 ui-monospace, "SF Mono", Menlo, Consolas, monospace;
}
@media print {
  body { font-size: 11pt; }
  main { padding: 0; }
  details { display: none; }
}
"""
