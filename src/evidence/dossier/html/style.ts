/** The look of a dossier: one quiet sheet for screens of any width, light and dark, and for paper. */
export const style = `
:root {
  color-scheme: light dark;
  --paper: #fbfaf7; --raised: #f3f1eb; --ink: #22252a; --soft: #5a5f67; --line: #dfdbd1;
  --accent: #1f5f63; --bad: #97331f; --warn: #6d5310; --add: #e3efe2; --del: #f6e3de; --mark: #efe6cc;
  --sans: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", "DejaVu Sans", sans-serif;
  --serif: Charter, "Bitstream Charter", "Iowan Old Style", "Source Serif 4", Cambria, Georgia, "DejaVu Serif", serif;
  --mono: ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #17191c; --raised: #1f2226; --ink: #e3e1db; --soft: #a3a8ae; --line: #33373c;
    --accent: #8cc4c2; --bad: #eda291; --warn: #d9bd7a; --add: #1f3326; --del: #3d2622; --mark: #3a3420;
  }
}
*, ::before, ::after { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; scroll-padding-top: 1rem; }
body {
  margin: 0; background: var(--paper); color: var(--ink); font: 1rem/1.55 var(--sans);
  font-variant-numeric: tabular-nums lining-nums; overflow-wrap: anywhere;
}
.page { max-width: 50rem; margin: 0 auto; padding: 2.5rem 1.25rem 5rem; }
h1, h2, h3 { font-family: var(--serif); font-weight: 600; line-height: 1.2; text-wrap: balance; margin: 0; }
h1 { font-size: clamp(1.55rem, 1.1rem + 2vw, 2.35rem); letter-spacing: -.012em; margin: .35rem 0 .9rem; }
h2 { font-size: 1.4rem; margin: 0 0 .9rem; }
h3 { font-size: 1.05rem; margin: 1.6rem 0 .5rem; }
p { margin: 0; }
section { padding-top: 1.6rem; margin-top: 2.4rem; border-top: 1px solid var(--line); }
a { color: var(--accent); text-underline-offset: .2em; text-decoration-thickness: 1px; }
a:focus-visible, summary:focus-visible, input:focus-visible, select:focus-visible, button:focus-visible {
  outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 2px;
}
code, pre, .path, .text.code { font-family: var(--mono); font-size: .84em; }
ol, ul, dl, dd { margin: 0; padding: 0; }
ol, ul { list-style: none; }
.skip { position: absolute; left: -100vw; }
.skip:focus { left: 1rem; top: 1rem; background: var(--paper); padding: .5rem; }
.eyebrow, .meta, .note, .cut, .size, .none, caption, dt, .legend { color: var(--soft); font-size: .84rem; line-height: 1.45; }
.eyebrow { letter-spacing: .01em; }
.none { font-style: italic; }
.bad { color: var(--bad); } .good { color: var(--accent); }
.bad, .good, .status, .tag { font-size: .84rem; }
.status::before { content: "● "; } .status.rejected::before { content: "✕ "; } .status.unjudged::before { content: "○ "; }
.status.adopted { color: var(--accent); } .status.rejected { color: var(--bad); } .status.unjudged { color: var(--soft); }
.tag { border: 1px solid var(--line); border-radius: 3px; padding: 0 .35em; color: var(--soft); white-space: nowrap; }
.state { font-size: .95rem; } .state .good, .state .bad { font-size: inherit; font-weight: 600; }
.state > span + span::before, .state > a::before { content: "·"; color: var(--soft); margin: 0 .5em; display: inline-block; text-decoration: none; }

.sums { display: grid; grid-template-columns: repeat(4, 1fr); gap: 1.1rem 1.5rem; margin: 1.8rem 0 0; }
@media (max-width: 40rem) { .sums { grid-template-columns: repeat(2, 1fr); } }
.sums dt { order: 2; } .sums div { display: flex; flex-direction: column; }
.sums dd { font-family: var(--serif); font-size: 1.45rem; line-height: 1.25; }
.sums .wrong { color: var(--bad); }

nav h2 { font: 600 .84rem var(--sans); color: var(--soft); margin: 0 0 .4rem; }
nav { margin-top: 2rem; }
nav ol { columns: 2; column-gap: 1.5rem; font-size: .92rem; }
nav li { break-inside: avoid; display: flex; justify-content: space-between; gap: .6em; padding: .12rem 0; }
nav a { text-decoration: none; } nav a:hover { text-decoration: underline; }
nav span { color: var(--soft); }
@media (min-width: 78rem) {
  .page { max-width: 68rem; display: grid; grid-template-columns: 12rem minmax(0, 50rem); column-gap: 4.5rem; }
  .page > * { grid-column: 2; }
  .page > nav { grid-column: 1; grid-row: 1 / span 2; position: sticky; top: 2.5rem; align-self: start; margin: .25rem 0 0; }
  nav ol { columns: 1; }
}

pre { margin: 0; }
.text, .diff { white-space: pre-wrap; overflow-wrap: anywhere; overflow: clip; unicode-bidi: isolate; line-height: 1.5; }
.prose, .reasoning { font: 1.02rem/1.6 var(--serif); max-width: 42rem; }
.reasoning { font-style: italic; color: var(--soft); }
#task .text, #answer .text { font-size: 1.1rem; }
#task .text + .text { margin-top: 1rem; }
.preview { display: block; color: var(--ink); }
.size { display: block; }
.cut { margin-top: .3rem; } .cut code { font-size: .9em; }
details > summary { cursor: pointer; }
.long > summary { list-style: none; } .long > summary::-webkit-details-marker { display: none; }
.long > summary .size::before { content: "▸ "; } .long[open] > summary .size::before { content: "▾ "; }
.long[open] > summary .preview { display: none; }
.long:not(:has(.size)) > summary { color: var(--soft); font-size: .84rem; }
.long:not(:has(.size)) > summary::before { content: "▸ "; } .long[open]:not(:has(.size)) > summary::before { content: "▾ "; }

.file { margin-top: .5rem; } .file .change, .file .sum { color: var(--soft); font-size: .84rem; }
.file .sum ins, .file .sum del { text-decoration: none; } .file ins { color: var(--accent); } .file del { color: var(--bad); }
.diff { background: var(--raised); border-radius: 4px; padding: .7rem .8rem; margin-top: .4rem; font-size: .8rem; }
.diff span { display: block; margin: 0 -.8rem; padding: 0 .8rem; min-height: 1.5em; }
.diff .a { background: var(--add); } .diff .d { background: var(--del); } .diff .h, .diff .f { color: var(--soft); }

.graph { display: flex; } .graph svg { flex: none; } .graph ol { flex: 1; min-width: 0; }
.graph li { height: 46px; padding-left: .35rem; display: flex; flex-direction: column; justify-content: center; }
.graph li p { white-space: nowrap; overflow: hidden; text-overflow: ellipsis; line-height: 1.35; }
.graph .op { color: var(--soft); }
.edges path { fill: none; stroke: var(--line); stroke-width: 2; }
.edges .adopted { stroke: var(--accent); opacity: .55; } .edges .rejected { stroke: var(--bad); opacity: .4; }
.edges .left-out { stroke-dasharray: 1.5 4; stroke-linecap: round; }
.edges .unjudged { stroke: var(--soft); opacity: .5; stroke-dasharray: 3 3; }
.nodes circle { fill: var(--paper); stroke: var(--soft); stroke-width: 1.75; }
.nodes .adopted { fill: var(--accent); stroke: var(--accent); } .nodes .rejected { stroke: var(--bad); }
.nodes .ring { stroke: var(--accent); stroke-width: 1.25; fill: none; } .nodes .cross { stroke: var(--bad); stroke-width: 1.5; fill: none; }
.graph + .note, .note + .note { margin-top: .5rem; }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; margin-top: .8rem; }
.legend li { display: flex; align-items: center; gap: .3rem; }

.branches > li, .plain > li { padding: .7rem 0; border-top: 1px solid var(--line); }
.branches > li:first-child, .plain > li:first-child { border-top: 0; padding-top: 0; }
.hits { margin: .3rem 0; } .hits li { display: grid; grid-template-columns: 3rem 1fr; }
.hits .score { color: var(--soft); font-size: .84rem; line-height: 1.9; }

table { width: 100%; border-collapse: collapse; font-size: .9rem; margin: 0 0 1.6rem; }
caption { text-align: left; padding-bottom: .3rem; }
th, td { text-align: right; padding: .4rem 0 .4rem .9rem; border-top: 1px solid var(--line); vertical-align: top; font-weight: 400; }
thead th { border-top: 0; color: var(--soft); font-size: .8rem; white-space: nowrap; }
th:first-child { text-align: left; padding-left: 0; overflow-wrap: anywhere; }
td { white-space: nowrap; } td:has(.steps) { white-space: normal; }
@media (max-width: 40rem) {
  thead { position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden; white-space: nowrap; }
  table, tbody, tr, th[scope=row], td, caption { display: block; text-align: left; padding: 0; border: 0; }
  tr { border-top: 1px solid var(--line); padding: .6rem 0; display: grid; grid-template-columns: 1fr 1fr; column-gap: 1.6rem; }
  td { display: flex; justify-content: space-between; gap: 1rem; white-space: normal; text-align: right; padding: .1rem 0; }
  td::before { content: attr(data-label); color: var(--soft); flex: none; }
  th[scope=row], td:has(.steps) { grid-column: 1 / -1; }
  th[scope=row] { font-weight: 600; padding-bottom: .2rem; }
}

.args { margin: .45rem 0 0; } .args > div { display: grid; grid-template-columns: 6rem minmax(0, 1fr); gap: 0 .8rem; padding: .12rem 0; }
.args dd { border-left: 2px solid var(--line); padding-left: .7rem; } .args dt { padding-top: .1rem; } .args .text { font-size: .84rem; }
.facts > div { display: flex; flex-wrap: wrap; gap: 0 .6rem; font-size: .9rem; padding: .08rem 0; } .facts dt { min-width: 5.4rem; line-height: inherit; }
@media (max-width: 34rem) { .args > div { grid-template-columns: minmax(0, 1fr); } }

.filter { display: flex; flex-wrap: wrap; gap: .6rem; margin-bottom: 1rem; align-items: end; }
.filter[hidden], .on-paper { display: none; }
.filter label { display: flex; flex-direction: column; font-size: .8rem; color: var(--soft); flex: 1 1 8rem; min-width: 0; }
.filter input, .filter select, .filter button { font: inherit; font-size: .92rem; color: var(--ink); background: var(--paper); border: 1px solid var(--line); border-radius: 4px; padding: 0 .5rem; height: 2.3rem; width: 100%; min-width: 0; margin: .15rem 0 0; }
.filter button { width: auto; flex: none; cursor: pointer; }
.filter output { flex-basis: 100%; font-size: .84rem; color: var(--soft); }
.group { border-top: 1px solid var(--line); }
.many > .step { content-visibility: auto; contain-intrinsic-size: auto 7rem; }
.group > summary { padding: .6rem 0; }
.group[hidden], .step[hidden] { display: none; }
.record { padding: .2rem 0 1rem; }
.step { padding: .65rem 0 .65rem 3.1rem; position: relative; }
.step .n { position: absolute; left: 0; width: 2.5rem; text-align: right; color: var(--soft); text-decoration: none; font-size: .84rem; line-height: 1.8; }
.step:target { background: var(--mark); }
.step .line { margin-bottom: .15rem; }
.step.failed .n { color: var(--bad); font-weight: 600; }
.calls, .drift { font-size: .9rem; } .drift { color: var(--warn); }
@media (max-width: 34rem) {
  .page { padding: 1.5rem 1rem 4rem; }
  .step { padding-left: 0; } .step .n { position: static; width: auto; margin-right: .3rem; }
  .step .n::before { content: "#"; }
}

.proof { margin-bottom: 1.2rem; } .proof h3 { margin: .45rem 0 .2rem; }
@media (min-width: 46rem) { .proof { display: grid; grid-template-columns: 7rem minmax(0, 1fr); gap: 0 1.5rem; } }
.statements li { padding: .4rem 0; border-top: 1px solid var(--line); font-size: .95rem; }
.statements li:first-child { border-top: 0; }
.heads li { padding: .15rem 0; } .digest { color: var(--soft); }
footer { color: var(--soft); font-size: .84rem; margin-top: 3rem; }

@media print {
  :root { --paper: #fff; --raised: #f6f5f2; --ink: #000; --soft: #444; --line: #bbb; --accent: #134b4f; --bad: #8a2a17; --add: #eaf2ea; --del: #f8eae7; color-scheme: light; }
  @page { margin: 18mm 16mm; }
  html { font-size: 9.5pt; } h1 { font-size: 20pt; }
  .page { display: block; max-width: none; padding: 0; }
  nav, .filter, .skip { display: none; } .on-paper { display: block; }
  a { color: inherit; text-decoration: none; }
  section { margin-top: 1.4rem; padding-top: 1rem; }
  h2, h3, summary, .step .line, caption { break-after: avoid; }
  tr, .branch, .statements li { break-inside: avoid; }
  .many > .step { content-visibility: visible; }
  details:not(.kept)::details-content { content-visibility: visible; display: block; height: auto; }
  summary { list-style: none; } summary::-webkit-details-marker { display: none; }
  .long > summary .preview, .long > summary .size { display: none; }
  .diff { border: 1px solid var(--line); }
}
`

/** Filters the record, opens what a link leads into and everything before printing. The page reads the same without it. */
export const script = `
(() => {
  const all = selector => [...document.querySelectorAll(selector)]
  const reveal = () => {
    const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1))
    if (!target) return
    for (let at = target.parentElement; at; at = at.parentElement) if (at.localName === 'details') at.open = true
    target.scrollIntoView()
  }
  addEventListener('hashchange', reveal)
  reveal()

  let closed = []
  addEventListener('beforeprint', () => {
    closed = all('details:not([open], .kept)')
    for (const fold of closed) fold.open = true
  })
  addEventListener('afterprint', () => {
    for (const fold of closed) fold.open = false
  })

  const filter = document.querySelector('.filter')
  if (!filter) return
  filter.hidden = false
  const [text, kind, by] = ['text', 'kind', 'by'].map(name => filter.querySelector('[name=' + name + ']'))
  const said = filter.querySelector('output')
  const groups = all('.group').map(group => ({ group, wasOpen: group.open, steps: [...group.querySelectorAll('.step')] }))
  let waiting
  const apply = () => {
    const wanted = text.value.trim().toLowerCase()
    const isAll = wanted === '' && kind.value === '' && by.value === ''
    let shown = 0
    for (const { group, wasOpen, steps } of groups) {
      let here = 0
      for (const step of steps) {
        const fits =
          (kind.value === '' ||
            (kind.value === 'failed' ? step.classList.contains('failed') : step.dataset.kind === kind.value)) &&
          (by.value === '' || step.dataset.by === by.value) &&
          (wanted === '' || step.textContent.toLowerCase().includes(wanted))
        step.hidden = !fits
        if (fits) here++
      }
      group.hidden = here === 0
      group.open = isAll ? wasOpen : here > 0 && shown < 200
      shown += here
    }
    said.textContent = isAll ? '' : shown.toLocaleString('en-US') + (shown === 1 ? ' step' : ' steps')
  }
  filter.addEventListener('input', () => {
    clearTimeout(waiting)
    waiting = setTimeout(apply, 120)
  })
  filter.querySelector('button').addEventListener('click', () => {
    const open = groups.some(({ group }) => !group.open)
    for (const { group } of groups) group.open = open
  })
})()
`
