"""Plotly and Altair figures: arrays and tables in, a figure in Loupe's colours and fonts out."""
