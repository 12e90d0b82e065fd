/** What the class of an object is called; for a class without a name, such as `new (class extends Workflow { … })()`, what it extends. */
export function classNameOf(object: object): string {
  let prototype = Object.getPrototypeOf(object)
  while (prototype.constructor.name === '') prototype = Object.getPrototypeOf(prototype)
  return prototype.constructor.name
}
