"""Arrays in, picture out. Only `views.component` knows Streamlit: mounting a view is its one concept."""
