/** What a sandbox with walls makes sure of, whichever walls they are. */
export const walls = Object.freeze({
  paths: true,
  environment: true,
  processTree: true,
  fileRead: true,
  fileWrite: true,
})
