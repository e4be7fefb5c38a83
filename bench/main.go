// Command bench compares sync2 with sync on this machine.
package main

func main() {}
