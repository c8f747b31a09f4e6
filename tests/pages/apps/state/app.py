import streamlit as st

st.navigation([st.Page("first.py"), st.Page("second.py")]).run()
