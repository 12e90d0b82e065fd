import { expect, test } from 'vitest'
import { pageText } from '../../src/memory/resource.ts'

test('a page is its words, in lines, without what scripts, styles and comments hold', () => {
  const page = `<!doctype html><title>Tides</title><style>p { color: red }</style>
    <SCRIPT src="a.js">if (a < b) document.write('<p>no</p>')</SCRIPT >
    <h1>High &amp; low</h1><p>At <b>no</b>on.<br/>Where a < b &amp;lt; c.</p>



    <!-- <p>nor this</p> --><p>Last.`
  expect(pageText(page).trim()).toBe('Tides\n\nHigh & low\n\nAt noon.\nWhere a < b &lt; c.\n\nLast.')
})

test('what is never closed reaches to the end of the page', () => {
  expect(pageText('<p>Kept.</p><script>steal()')).toContain('Kept.')
  expect(pageText('<p>Kept.</p><script>steal()')).not.toContain('steal')
  expect(pageText('Kept. <!-- lost')).not.toContain('lost')
})

test('a page that was made to be hard to read takes no longer than others', () => {
  const most = 1_000_000
  for (const part of ['<', '<p ', '<!--', '<script>', '<script></script ', '\r', ' \n', '</'])
    expect(pageText(part.repeat(most / part.length)).length).toBeLessThanOrEqual(most)
})
