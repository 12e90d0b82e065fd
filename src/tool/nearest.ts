/** The known names that a mistaken one probably meant, best first. */
export function nearest(name: string, known: Iterable<string>, count = 3): string[] {
  const wanted = plain(name)
  const near: { name: string; distance: number }[] = []
  for (const candidate of known) {
    const other = plain(candidate)
    const isPart = wanted.length > 2 && (other.includes(wanted) || wanted.includes(other))
    const distance = isPart ? 1 : distanceBetween(wanted, other)
    if (distance <= Math.max(2, Math.ceil(other.length / 3))) near.push({ name: candidate, distance })
  }
  near.sort((a, b) => a.distance - b.distance || (a.name < b.name ? -1 : 1))
  return near.slice(0, count).map(candidate => candidate.name)
}

/** Models mix up case and separators more often than letters. */
function plain(name: string): string {
  return name
    .toLowerCase()
    .replace(/[^a-z0-9]/g, '')
    .slice(0, 64)
}

/** Levenshtein's distance. */
function distanceBetween(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, i) => i)
  for (let i = 1; i <= from.length; i++) {
    const next = [i]
    for (let j = 1; j <= to.length; j++) {
      const change = (row[j - 1] as number) + (from[i - 1] === to[j - 1] ? 0 : 1)
      next.push(Math.min(change, (row[j] as number) + 1, (next[j - 1] as number) + 1))
    }
    row = next
  }
  return row[to.length] as number
}
