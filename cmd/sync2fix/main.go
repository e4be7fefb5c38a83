// Command sync2fix rewrites a module's imports of sync to sync2.
package main

func main() {}
