package offline

import (
	"bytes"
	"encoding/json"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// maxDepth is more than any object of Kubernetes is nested.
const maxDepth = 500

// writeJSON writes a node as JSON. It knows what JSON knows: aliases, which can make
// gigabytes of a few lines, merges and tags of other types are errors, as kubectl
// never writes them; so is a key that is there twice, of which one would be lost.
func writeJSON(out *bytes.Buffer, n *yaml.Node, depth int) error {
	if depth > maxDepth {
		return wrongNode(n, "is nested more than %d levels deep", maxDepth)
	}
	switch n.Kind {
	case yaml.MappingNode:
		return writeObject(out, n, depth)
	case yaml.SequenceNode:
		out.WriteByte('[')
		for i, item := range n.Content {
			if i > 0 {
				out.WriteByte(',')
			}
			if err := writeJSON(out, item, depth+1); err != nil {
				return err
			}
		}
		out.WriteByte(']')
		return nil
	case yaml.ScalarNode:
		return writeScalar(out, n)
	default:
		return wrongNode(n, "has an alias (*%s), which is not read: write out what it stands for", n.Value)
	}
}

func writeObject(out *bytes.Buffer, n *yaml.Node, depth int) error {
	seen := make(map[string]int, len(n.Content)/2)
	out.WriteByte('{')
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind != yaml.ScalarNode || key.Tag == "!!merge" {
			return wrongNode(key, "has a key that is not a plain name")
		}
		if line, twice := seen[key.Value]; twice {
			return wrongNode(key, "has the key %q twice, also in line %d of the document; is a line `---` missing between two documents?", key.Value, line)
		}
		seen[key.Value] = key.Line
		if i > 0 {
			out.WriteByte(',')
		}
		writeString(out, key.Value)
		out.WriteByte(':')
		if err := writeJSON(out, n.Content[i+1], depth+1); err != nil {
			return err
		}
	}
	out.WriteByte('}')
	return nil
}

func writeScalar(out *bytes.Buffer, n *yaml.Node) error {
	switch n.ShortTag() {
	case "!!null":
		out.WriteString("null")
	case "!!str", "!!timestamp": // Kubernetes has times as strings
		writeString(out, n.Value)
	case "!!bool":
		var b bool
		if err := n.Decode(&b); err != nil {
			return wrongNode(n, "%v", err)
		}
		out.WriteString(strconv.FormatBool(b))
	case "!!int", "!!float":
		return writeNumber(out, n)
	default:
		return wrongNode(n, "has a value of type %s", n.ShortTag())
	}
	return nil
}

// writeNumber keeps a number as it is written, if JSON can.
func writeNumber(out *bytes.Buffer, n *yaml.Node) error {
	if json.Valid([]byte(n.Value)) {
		out.WriteString(n.Value)
		return nil
	}
	var v any
	if err := n.Decode(&v); err != nil {
		return wrongNode(n, "%v", err)
	}
	data, err := json.Marshal(v)
	if err != nil {
		return wrongNode(n, "%s is no number of JSON", n.Value)
	}
	out.Write(data)
	return nil
}

func writeString(out *bytes.Buffer, s string) {
	data, _ := json.Marshal(s) // a string has always a form in JSON
	out.Write(data)
}
