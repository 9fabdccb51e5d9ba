module github.com/dramigrate/dramigrate

go 1.26.0
