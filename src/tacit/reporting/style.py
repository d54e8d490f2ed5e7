"""The look of the HTML pages: one style sheet, light and dark, nothing fetched.

Colors mean something: green is a proven guarantee, amber is something to be wary of,
gray is neither. Below 800 pixels tables of many columns become records, charts name
their lines below, and facts stand two in a row.
"""

CSS = """
:root {
  color-scheme: light dark;
  --page: #ffffff; --card: #f4f6f7; --ink: #1b2126; --quiet: #59636d; --line: #dbe1e5;
  --accent: #0b7a67; --bar: #2a9d87; --open: #87929c; --warn-bar: #c9701a;
  --warn-ink: #8a3b00; --warn: #fff3e4; --warn-line: #f0b878;
  --good-ink: #0b5f50; --good: #e5f6f1; --good-line: #7ccab8;
  --two: #b9610c; --three: #7066c4; --four: #c93f77; --five: #2f78b8; --six: #757332;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14181d; --card: #1d232a; --ink: #e6eaee; --quiet: #a5b0ba; --line: #38424c;
    --accent: #3fc4aa; --bar: #2fa790; --open: #6d7883; --warn-bar: #c9803a;
    --warn-ink: #ffc98a; --warn: #33240f; --warn-line: #80551f;
    --good-ink: #86e0cb; --good: #10302a; --good-line: #2b7666;
    --two: #dd8a3c; --three: #958ce0; --four: #e0689a; --five: #5aa2de; --six: #a19e55;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--page); color: var(--ink); overflow-wrap: break-word;
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
}
main { max-width: 58rem; margin: 0 auto; padding: 2.25rem 1.25rem 4rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .5rem; letter-spacing: -.01em; }
h2 { font-size: 1.25rem; line-height: 1.3; margin: 3rem 0 .75rem; }
h3 { font-size: 1rem; margin: 1.75rem 0 .5rem; }
p, li { max-width: 44rem; }
p { margin: .5rem 0; }
.brand { color: var(--accent); font-weight: 650; margin: 0 0 1rem; }
.quiet, figcaption, caption, small { color: var(--quiet); font-size: .875rem; }
.badge {
  display: inline-block; padding: .05rem .6rem; border: 1px solid var(--warn-line);
  border-radius: 1rem; background: var(--warn); color: var(--warn-ink);
  font-size: .8rem; font-weight: 600; vertical-align: .25em; letter-spacing: 0;
}
.notice {
  margin: 1rem 0; padding: .7rem 1rem; border-radius: .5rem;
  border: 1px solid var(--warn-line); background: var(--warn); color: var(--warn-ink);
}
.notice.good {
  border-color: var(--good-line); background: var(--good); color: var(--good-ink);
}
.notice p { margin: 0; }
.whole { white-space: nowrap; }

.advice { font-size: 1.15rem; line-height: 1.5; font-weight: 600; }

dl.facts {
  display: grid; grid-template-columns: repeat(auto-fill, minmax(10rem, 1fr));
  gap: .6rem; margin: 1.25rem 0;
}
dl.facts div { background: var(--card); border-radius: .5rem; padding: .55rem .9rem; }
dl.lead { grid-template-columns: repeat(auto-fit, minmax(13rem, 1fr)); }
dl.lead dd { font-size: 1.6rem; line-height: 1.25; }
dl.lead .proven dd:first-of-type { color: var(--accent); }
dl.lead dd + dd { font-size: .875rem; line-height: 1.45; font-weight: 400; }
dl.lead dd + dd { color: var(--quiet); }
dt { color: var(--quiet); font-size: .8rem; }
dd { margin: 0; font-weight: 600; overflow-wrap: anywhere; }

.promises { list-style: none; margin: 1rem 0; padding: 0; }
.promises > li {
  display: grid; grid-template-columns: 9rem 1fr; gap: 0 1.25rem; max-width: none;
  padding: .9rem 1.1rem; margin: 0 0 .6rem; background: var(--card);
  border-radius: .5rem; border-left: 4px solid var(--warn-line);
}
.promises > li.proven { border-left-color: var(--accent); }
.promises .figure { font-size: 1.25rem; font-weight: 650; line-height: 1.35; }
.promises .proven .figure { color: var(--accent); }
.promises .figure small { display: block; font-weight: 400; }
.promises .who { font-weight: 600; margin: 0; }
.promises p { margin: .15rem 0; }

table { margin: 1rem 0; border-collapse: collapse; width: 100%; font-size: .92rem; }
caption { text-align: left; padding-bottom: .4rem; }
th, td {
  text-align: left; vertical-align: top; padding: .45rem .9rem .45rem 0;
  border-bottom: 1px solid var(--line);
}
th:last-child, td:last-child { padding-right: 0; }
thead th { color: var(--quiet); font-weight: 600; }
tbody th { font-weight: 600; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
td.number { white-space: nowrap; }
tr.ours > * { color: var(--accent); font-weight: 650; }

figure { margin: 1rem 0 1.5rem; }
figcaption { margin-top: .6rem; max-width: 44rem; }
.bars { list-style: none; margin: 0; padding: 0; }
.bars li {
  display: grid; grid-template-columns: 17rem 1fr 4rem; gap: 0 .9rem;
  align-items: center; padding: .22rem 0; max-width: none; font-size: .92rem;
}
.bars .name { line-height: 1.3; overflow-wrap: anywhere; }
.bars .marked { font-weight: 650; }
.bars .name small { white-space: nowrap; font-weight: 400; }
.bars .value { text-align: right; font-variant-numeric: tabular-nums; }
.bars .track { position: relative; height: 1.1rem; }
.bars i { position: absolute; top: 0; bottom: 0; display: block; }
.bars .bar { background: var(--open); border-radius: 0 .15rem .15rem 0; }
.bars .private .bar { background: var(--bar); }
.bars .warning .bar { background: var(--warn-bar); }
.bars .error { top: calc(50% - 1px); bottom: calc(50% - 1px); background: var(--ink); }
.bars .most { width: 2px; background: var(--ink); }
.bars .mark {
  top: -.25rem; bottom: -.25rem; width: 0; border-left: 1px dashed var(--ink);
}

.plot { padding: 0 .5rem 0 3.25rem; font-size: .8125rem; line-height: 1.25; }
.plot.named { padding-right: 16.5rem; }
.plot p { margin: 0 0 .9rem -3.25rem; color: var(--quiet); }
.plot .x-name { margin: 1.9rem 0 0; text-align: center; }
.plot .area { position: relative; height: 15rem; }
.plot svg { display: block; width: 100%; height: 100%; overflow: visible; }
.plot path { fill: none; stroke-width: 2; vector-effect: non-scaling-stroke; }
.plot .grid { stroke: var(--line); stroke-width: 1; }
.plot path.level { stroke: var(--quiet); stroke-width: 1.2; stroke-dasharray: 5 4; }
.plot g path { stroke: var(--series); }
.plot g .dot { stroke-width: 8; stroke-linecap: round; }
.plot g .band { fill: var(--series); fill-opacity: .2; stroke: none; }
.plot .area > span { position: absolute; white-space: nowrap; }
.plot .y { right: 100%; margin-right: .5rem; transform: translateY(-50%); }
.plot .x { top: 100%; margin-top: .5rem; transform: translateX(-50%); }
.plot .end {
  left: 100%; margin-left: .5rem; transform: translateY(-50%); max-width: 16rem;
  overflow: hidden; text-overflow: ellipsis;
}
.plot .end i { display: none; }
.plot .end::before, .legend li::before {
  content: ""; display: inline-block; width: .9rem; height: 0; vertical-align: .25em;
  margin-right: .4rem; border-top: 3px solid var(--series);
}
.plot .end.level::before, .legend .level::before {
  border-top: 2px dashed var(--quiet);
}
.plot .legend { display: none; margin: .8rem 0 0 -3.25rem; padding-left: 1.5rem; }
.s0 { --series: var(--bar); } .s1 { --series: var(--two); }
.s2 { --series: var(--three); } .s3 { --series: var(--four); }
.s4 { --series: var(--five); } .s5 { --series: var(--six); }

details { margin: .75rem 0; }
summary { cursor: pointer; color: var(--accent); font-size: .92rem; }
ol.list { padding-left: 2rem; margin: .75rem 0; }
ol.list li { padding: .3rem 0; }
ol.list small { display: block; }
ul.history { margin: .5rem 0; padding-left: 1.1rem; columns: 16rem; }
pre {
  background: var(--card); border-radius: .5rem; padding: .8rem 1rem; margin: .75rem 0;
  font: .85rem/1.5 ui-monospace, "SF Mono", Menlo, Consolas, monospace;
  white-space: pre-wrap; overflow-wrap: anywhere;
}
code { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }

@media (max-width: 800px) {
  main { padding: 1.5rem 1rem 3rem; }
  h1 { font-size: 1.5rem; }
  h2 { font-size: 1.15rem; margin-top: 2.25rem; }
  dl.facts { grid-template-columns: repeat(2, minmax(0, 1fr)); }
  dl.lead { grid-template-columns: minmax(0, 1fr); }
  .promises > li { grid-template-columns: minmax(0, 1fr); }
  .promises .figure small { display: inline; }
  .bars li { grid-template-columns: 1fr auto; padding: .35rem 0; }
  .bars .track { grid-row: 2; grid-column: 1 / -1; height: .8rem; }
  .bars .mark { top: 0; bottom: 0; }
  .plot.named { padding-right: 2rem; }
  .plot .end { margin-left: .6rem; }
  .plot .end::before, .plot .end span { display: none; }
  .plot .end i { display: inline; font-style: normal; font-weight: 650; }
  .plot .legend { display: block; }
  table.records, .records tbody, .records tr, .records td, .records th,
  .records caption { display: block; }
  .records thead {
    position: absolute; width: 1px; height: 1px; overflow: hidden;
    clip-path: inset(50%);
  }
  .records tr { padding: .6rem 0; border-bottom: 1px solid var(--line); }
  .records th, .records td {
    border: 0; padding: .1rem 0; text-align: left; white-space: normal;
  }
  .records td { display: grid; grid-template-columns: 8.5rem 1fr; gap: .75rem; }
  .records td.missing { display: none; }
  .records td::before { content: attr(data-label); color: var(--quiet); }
  .records td, .records tbody th { overflow-wrap: anywhere; }
}
@media print {
  body { font-size: 11pt; }
  main { padding: 0; }
  details::details-content { content-visibility: visible; block-size: auto; }
}
"""
