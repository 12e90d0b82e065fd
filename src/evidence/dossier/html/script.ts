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
