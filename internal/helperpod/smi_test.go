package helperpod

import (
	"slices"
	"testing"
)

func TestParseSMI(t *testing.T) {
	tests := []struct {
		name, log string
		want      []string
	}{{
		name: "whole GPUs, in the order of the log",
		log: "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-5f727037-7cce-5fc4-b316-54a2755e08e7)\n" +
			"GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-0bfeb96d-8a9f-59d4-beff-12eb65372aea)\n",
		want: []string{"GPU-5f727037-7cce-5fc4-b316-54a2755e08e7", "GPU-0bfeb96d-8a9f-59d4-beff-12eb65372aea"},
	}, {
		name: "MIG devices stand for their board, other boards for themselves",
		log: "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-11111111-0000-0000-0000-000000000000)\r\n" +
			"  MIG 1g.5gb      Device  0: (UUID: MIG-22222222-0000-0000-0000-000000000000)\r\n" +
			"  MIG 1g.5gb      Device  1: (UUID: MIG-33333333-0000-0000-0000-000000000000)\r\n" +
			"GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-44444444-0000-0000-0000-000000000000)\r\n",
		want: []string{
			"MIG-22222222-0000-0000-0000-000000000000", "MIG-33333333-0000-0000-0000-000000000000",
			"GPU-44444444-0000-0000-0000-000000000000",
		},
	}, {
		name: "no device",
		log:  "No devices were found\n",
	}, {
		name: "lines that only look like one",
		log:  "+ echo GPU 0: x (UUID: GPU-55555555)\nGPU 0: x (UUID: TPU-1)\nGPU-66666666\n",
	}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := ParseSMI(tt.log); !slices.Equal(got, tt.want) {
				t.Errorf("ParseSMI = %v, want %v", got, tt.want)
			}
		})
	}
}
