package lance

import "google.golang.org/protobuf/encoding/protowire"

// dataFilePath is a field of the message of a data file.
const dataFilePath protowire.Number = 1

// DataFiles returns the paths of all data files that a manifest file, given whole, names, relative to the table's data directory, in the order of
// the file; one that several fragments share stands there for each. The error is a *CorruptError.
func DataFiles(data []byte) ([]string, error) {
	message, _, err := manifestMessage(data)
	if err != nil {
		return nil, err
	}
	var paths []string
	for f, err := range protoFields(message) {
		if err == nil && f.number == manifestFragments {
			paths, err = appendDataFiles(paths, f)
		}
		if err != nil {
			return nil, corrupt("manifest", "%v", err)
		}
	}
	return paths, nil
}

// appendDataFiles adds those of one fragment.
func appendDataFiles(paths []string, fragment protoField) ([]string, error) {
	content, err := fragment.content()
	if err != nil {
		return nil, err
	}
	for part, err := range protoFields(content) {
		if err == nil && part.number == fragmentDataFile {
			paths, err = appendPath(paths, part)
		}
		if err != nil {
			return nil, err
		}
	}
	return paths, nil
}

// appendPath adds that of one data file.
func appendPath(paths []string, file protoField) ([]string, error) {
	content, err := file.content()
	if err != nil {
		return nil, err
	}
	for f, err := range protoFields(content) {
		if err != nil {
			return nil, err
		}
		if f.number != dataFilePath {
			continue
		}
		path, err := f.text()
		if err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}
