// Tells whether a history of a table is linearizable, by porcupine.
//
// It reads a JSON list of operations from its input and prints `Ok`, `Illegal` or `Unknown`. The table
// is a set of rows in folders. An append adds rows to folders, an overwrite replaces those of folders,
// and a read sees the rows of all folders.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

const mostTime = 5 * time.Minute

type operation struct {
	Kind string           `json:"kind"`
	Rows map[string][]int `json:"rows"`
	// What a read has seen, in order.
	IDs  []int   `json:"ids"`
	Call float64 `json:"call"`
	// Absent if nobody knows whether the write took effect, and when.
	Return *float64 `json:"return"`
}

type table map[string][]int

func step(state, input, _ any) (bool, any) {
	before, one := state.(table), input.(operation)
	if one.Kind == "read" {
		var ids []int
		for _, some := range before {
			ids = append(ids, some...)
		}
		slices.Sort(ids)
		return slices.Equal(ids, one.IDs), before
	}
	after := maps.Clone(before)
	for folder, ids := range one.Rows {
		rest := before[folder]
		if one.Kind == "overwrite" {
			rest = nil
		}
		// Rows of equal states are in one order.
		rows := slices.Concat(rest, ids)
		slices.Sort(rows)
		after[folder] = rows
	}
	return true, after
}

func equal(one, other any) bool {
	return maps.EqualFunc(one.(table), other.(table), slices.Equal[[]int])
}

// ended returns the operations that a history must have had, with the times at which they had ended.
//
// Each row is written once. So a write whose end is unknown took effect before the end of the first read
// that saw a row of it. If no read saw one, no read tells whether it took effect: what an overwrite
// removes, the one that hides its rows has removed as well.
func ended(all []operation) []porcupine.Operation {
	seen := map[int]float64{}
	for _, one := range all {
		for _, id := range one.IDs {
			if at, known := seen[id]; !known || *one.Return < at {
				seen[id] = *one.Return
			}
		}
	}
	var operations []porcupine.Operation
	for _, one := range all {
		if one.Return == nil {
			one.Return = firstLook(one, seen)
		}
		if one.Return != nil {
			call, end := int64(one.Call*1e9), int64(*one.Return*1e9)
			operations = append(operations, porcupine.Operation{Input: one, Call: call, Return: end})
		}
	}
	return operations
}

func firstLook(write operation, seen map[int]float64) *float64 {
	var first *float64
	for _, ids := range write.Rows {
		for _, id := range ids {
			if at, known := seen[id]; known && (first == nil || at < *first) {
				first = &at
			}
		}
	}
	return first
}

func main() {
	var all []operation
	if err := json.NewDecoder(os.Stdin).Decode(&all); err != nil {
		log.Fatal(err)
	}
	model := porcupine.Model{Init: func() any { return table{} }, Step: step, Equal: equal}
	fmt.Println(porcupine.CheckOperationsTimeout(model, ended(all), mostTime))
}
