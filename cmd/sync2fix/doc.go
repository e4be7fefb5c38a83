// Command sync2fix makes a module use sync2 instead of package sync, by
// rewriting one thing: its imports.
//
//	sync2fix [-n] [-undo | -replace PATH] DIR
//
// DIR is the root of a module, the directory that holds its go.mod. Each import
// of "sync" in the module's Go files becomes
//
//	import sync "github.com/hqsync/hqsync/sync2"
//
// so that every sync.Mutex in the file goes on to compile, now as sync2's. An
// import under another name, a dot import and a blank import keep their name.
// Nothing else in a file changes, not even a space, except that a file which was
// as gofmt writes it still is: its block of imports is sorted again.
//
// # What is rewritten
//
// The files that the go command could build from DIR/..., whatever their build
// constraints say: test files, files that use cgo, files tagged ignore,
// generated files (they are marked in the output; teach their generator the new
// import, or it will bring the old one back).
//
// Left alone, as by the go command: directories named testdata or vendor,
// directories and files whose names begin with . or _, directories that an
// ignore directive in go.mod names, other modules below DIR, and symbolic links.
// Where sync2fix leaves something alone that imports sync, it says so. It never
// writes outside DIR.
//
// Left alone inside a file: comments, string literals (a template that prints
// import "sync" goes on printing it), and go:linkname directives that name
// symbols of package sync.
//
// # All or nothing
//
// If one file does not parse or cannot be written, no file changes. New contents
// are staged beside the old and moved into place, with the same permissions; a
// file without write permission is refused. Every change is printed on standard
// output as FILE:LINE: OLD -> NEW, with the line it had before; notes and the
// summary go to standard error.
//
// With -n nothing is written; standard output is a patch for "patch -p1" or
// "git apply" in DIR.
//
// # go.mod
//
// The rewritten module must require hqsync, which is not published: its go.mod
// needs a replace directive that points at a checkout. With -replace PATH, where
// PATH is that checkout, sync2fix edits go.mod too, as this command would:
//
//	go mod edit -require=github.com/hqsync/hqsync@v0.0.0 -replace=github.com/hqsync/hqsync=PATH
//
// A relative PATH is taken from the current directory. Without -replace, go.mod
// is not touched and the command is printed. Either way "go mod tidy" is yours
// to run, and "go mod vendor" after it if the module has a vendor directory. Tidy
// raises the go line of go.mod to that of hqsync if it is older. That changes
// more than sync: from go 1.22 on, each iteration of a loop has its own variables,
// and the GODEBUG defaults are those of the new version.
//
// # Going back
//
// With -undo, imports of sync2 become imports of sync, also those that sync2fix
// did not write; so what you wrote against the additions of sync2 will not
// compile. An import of sync2 under its own name becomes sync2 "sync".
//
// After a rewrite, -undo restores each file byte for byte, with these exceptions:
// the import sync "sync", which names what needs no name, comes back as "sync",
// other curiosities such as import"sync" come back in their usual spelling, and
// gofmt may have attached a /* */ comment among the imports to another of them, and
// a file that gofmt would have changed comes back as gofmt has it if its imports
// happened to be in order by their new paths.
//
// # Limits
//
// sync2.Mutex, RWMutex, Cond and WaitGroup are types of their own; the rest of
// sync2 are aliases of sync. Hence two modules that pass each other one of the
// four, say a *sync.Mutex, must both be rewritten, or neither. The compiler finds
// every such place. Interfaces such as sync.Locker cross freely. In the standard
// library only syscall.ForkLock is affected: its methods can be called as before,
// but &syscall.ForkLock is no *sync2.RWMutex.
//
// # Exit status
//
// The exit status is 0 if the module is now as asked (also if it was before), 1
// if sync2fix refused or failed, 2 if the command line is wrong.
package main
