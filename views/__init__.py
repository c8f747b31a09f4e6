"""Arrays in, picture out. Only `views.core.component` knows Streamlit: mounting a view is its one concept."""
