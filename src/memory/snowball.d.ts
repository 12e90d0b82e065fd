declare module 'snowball-stemmers' {
  interface Stemmer {
    stem(word: string): string
  }
  const factory: { newStemmer(language: string): Stemmer }
  export default factory
}
