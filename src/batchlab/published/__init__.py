"""The paper's facts: its workloads, goals, numbers of trials and sizes of datasets, and points read off its pictures.

The paper is "Measuring the Effects of Data Parallelism on Neural Network Training" (Shallue et al., 2019).
"""
