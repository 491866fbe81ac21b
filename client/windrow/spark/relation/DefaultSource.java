package windrow;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.function.BiFunction;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.RelationProvider;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.collection.immutable.Map;

/** The class that Spark loads for the format `windrow`. */
public final class DefaultSource implements RelationProvider {
    private static BiFunction tables;

    public void openBy(BiFunction tables) {
        DefaultSource.tables = tables;
    }

    public BaseRelation createRelation(SQLContext context, Map parameters) {
        ObjectNode options = new ObjectMapper().createObjectNode();
        Iterator all = parameters.iterator();
        while (all.hasNext()) {
            Tuple2 option = (Tuple2) all.next();
            options.put((String) option._1(), (String) option._2());
        }
        Object table = tables.apply(context.sparkSession(), options.toString());
        // This is the only exception of which PySpark shows nothing but the message.
        if (table instanceof String) throw new IllegalArgumentException((String) table);
        return (BaseRelation) table;
    }
}
