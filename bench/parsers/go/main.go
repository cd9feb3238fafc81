// Parses all messages of a file with pglogrepl, once for each line that comes in.
package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"os"

	"github.com/jackc/pglogrepl"
)

func main() {
	file, err := os.ReadFile(os.Args[1])
	if err != nil {
		panic(err)
	}
	var messages [][]byte
	for at := uint32(0); at < uint32(len(file)); {
		size := binary.BigEndian.Uint32(file[at:])
		messages = append(messages, file[at+4:at+4+size])
		at += 4 + size
	}
	rounds := bufio.NewScanner(os.Stdin)
	for rounds.Scan() {
		types := 0
		for _, message := range messages {
			parsed, err := pglogrepl.Parse(message)
			if err != nil {
				panic(err)
			}
			types += int(parsed.Type())
		}
		fmt.Println(types)
	}
}
