import type { Usage } from '../../session/usage.ts'

/** How numbers and times are written, the same wherever a dossier is made. */
export function count(value: number): string {
  return value.toLocaleString('en-US')
}

export function counted(value: number, what: string, several = `${what}s`): string {
  return `${count(value)} ${value === 1 ? what : several}`
}

export function money(usage: Usage): string {
  const { cost } = usage
  if (cost === undefined) return '–'
  return `$${cost.toFixed(cost !== 0 && cost < 0.1 ? 4 : 2)}`
}

/** In UTC, to the second. */
export function moment(at: number): string {
  return stamp(at).slice(0, 19).replace('T', ' ')
}

export function timeOfDay(at: number): string {
  return stamp(at).slice(11, 19)
}

export function span(milliseconds: number): string {
  const seconds = milliseconds / 1000
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`
  if (seconds < 60) return `${seconds.toFixed(1)} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`
  const hours = Math.floor(minutes / 60)
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`
}

/** The end of an id tells sessions apart; of a digest, the beginning does. */
export function shortId(id: string): string {
  return id.length > 12 ? `…${id.slice(-8)}` : id
}

export function shortDigest(digest: string): string {
  return `${digest.slice(0, 12)}…`
}

function stamp(at: number): string {
  const date = new Date(at)
  return Number.isNaN(date.getTime()) ? '????-??-??T??:??:??' : date.toISOString()
}
