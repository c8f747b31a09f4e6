"""Tables of two columns whose rule stands nowhere: only the rows above say what is asked of a new word.

A prompt is rows "x: y" of one table, a line each. Which of the rules it is, and with what labels, prefix or suffix, is
drawn for each prompt anew, so that a model that has seen no row can only guess (Brown et al. 2020, section 2; Garg et
al. 2022, who train on such prompts from the beginning).
"""
