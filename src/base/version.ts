/** Of this library, as in package.json; runs say which one made them. */
export const version = '0.1.0'
