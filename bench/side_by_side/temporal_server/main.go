// A Temporal server with its store in memory, of the server's own test package. It prints its address and its namespace.
// Ends when its standard input ends.
package main

import (
	"fmt"
	"io"
	"os"

	"go.temporal.io/server/temporaltest"
)

func main() {
	server := temporaltest.NewServer()
	fmt.Println(server.GetFrontendHostPort(), server.GetDefaultNamespace())
	io.Copy(io.Discard, os.Stdin)
	server.Stop()
}
