"""What answers browsers and programs: first load, several processes, metrics, API, and the patches of Streamlit."""
