"""Controls of the page Generate: the prompt and the settings of sampling."""
