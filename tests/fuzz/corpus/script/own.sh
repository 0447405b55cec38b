#!/bin/bash
#BERTH --gpus 1..2 --gpu-memory 20GiB --time 2h --retries 3 --queue night
#BERTH --env 'A=b c' --rule gpu_left=1 --after 3,5-9 --array 0-9%4 --log x.log
echo hello
